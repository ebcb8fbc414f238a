package question

import "time"

// answerTail is how long after an answer keys may still belong to it.
const answerTail = 1500 * time.Millisecond

// Rest recognises the rest of a typed answer: the es and Enter of yes, the o and Enter of no. These keys must neither get into the
// line nor run a command. Any other key, a pause, or answerTail ends the rest, so that no key of the next question is lost.
type Rest struct {
	since time.Time // when the answer was given; zero = no rest is expected
	word  string    // the letters that would complete the word
}

// Begin records that a key has answered.
func (r *Rest) Begin(key string, now time.Time) {
	*r = Rest{now, map[string]string{keyAllow: "es", keyDeny: "o"}[key]}
}

// Expected reports whether a key of the rest may still be typed.
func (r *Rest) Expected(now, lastKey time.Time) bool {
	return !r.since.IsZero() && now.Sub(lastKey) < ArmDelay
}

// Takes reports whether a key belongs to the rest.
func (r *Rest) Takes(key string, now, lastKey time.Time) bool {
	if r.Expected(now, lastKey) && now.Sub(r.since) <= answerTail {
		if r.word != "" && key == r.word[:1] {
			r.word = r.word[1:]
			return true
		}
		if key == "enter" {
			*r = Rest{}
			return true
		}
	}
	*r = Rest{}
	return false
}
