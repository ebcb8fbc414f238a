package question

import "time"

// answerTail bounds how long keys may belong to an answer.
const answerTail = 1500 * time.Millisecond

// Rest is what may still be typed of an answer: the es and Enter of a typed yes, the o and Enter of a no. They must not end up in
// the line, or be a command. Any other key, a pause, or answerTail ends it: what else is typed right after an answer is the
// next question already, and nothing of it may be lost.
type Rest struct {
	since time.Time // zero: none is expected
	word  string    // what would complete the word that was begun
}

// Begin notes that a key answered.
func (r *Rest) Begin(key string, now time.Time) {
	*r = Rest{now, map[string]string{keyAllow: "es", keyDeny: "o"}[key]}
}

// Expected reports whether the rest may still come.
func (r *Rest) Expected(now, lastKey time.Time) bool {
	return !r.since.IsZero() && now.Sub(lastKey) < ArmDelay
}

// Takes reports whether a key belongs to the answer before it.
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
