package offline

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// clockIntents are about dates, and sums.
var clockIntents = []intent{
	{
		name:    "date sum",
		example: "what date is in 10 days",
		patterns: []string{
			`^(?:what|which)(?: (?:date|day|weekday))?(?: (?:is|was|will it be|will be))*(?: (?:it|the date))? (?P<in>in|after) {n} (?P<unit>days?|weeks?|months?|years?)$`, `^(?:what|which)(?: (?:date|day|weekday))?(?: (?:is|was|it))* {n} (?P<unit>days?|weeks?|months?|years?) (?P<in>from now|from today|ago|before today)$`, `^(?:the date |date )?(?P<in>in) {n} (?P<unit>days?|weeks?|months?|years?)$`, `^(?:today|now) (?P<in>[+-]|plus|minus) {n} (?P<unit>days?|weeks?|months?|years?)$`,
		},
		plan: steps(run("today's date", now)),
		answer: func(j *job) string {
			today, err := readNow(j)
			if err != "" {
				return err
			}
			n, _ := strconv.Atoi(j.args["n"])
			if len(j.args["n"]) > 6 {
				return "That is further than I count."
			}
			switch strings.ToLower(j.args["in"]) {
			case "ago", "before today", "-", "minus":
				n = -n
			}
			var d time.Time
			switch strings.TrimSuffix(strings.ToLower(j.args["unit"]), "s") {
			case "week":
				d = today.AddDate(0, 0, 7*n)
			case "month":
				d = today.AddDate(0, n, 0)
			case "year":
				d = today.AddDate(n, 0, 0)
			default:
				d = today.AddDate(0, 0, n)
			}
			return "**" + d.Format("Monday, 2 January 2006") + "**."
		},
		no: "I did not look",
	},
	{
		name:    "days until",
		example: "how many days until 2027-01-01",
		patterns: []string{
			`^how (?:many days|long)(?: is it| are there| is)?(?: left)?(?: to| until| till| before| since) (?P<day>\d{4}-\d\d?-\d\d?|christmas|new year(?:'s(?: (?:day|eve))?)?|(?:the )?(?:end of (?:the |this )?(?:year|month)))$`, `^days (?:until|till|to|since) (?P<day>\d{4}-\d\d?-\d\d?|christmas|new year)$`,
			`^(?:what|which) (?:day|weekday|day of the week) (?:is|was|will be) (?:the )?(?P<week>\d{4}-\d\d?-\d\d?)$`,
		},
		plan: steps(run("today's date", now)),
		answer: func(j *job) string {
			today, err := readNow(j)
			if err != "" {
				return err
			}
			word := strings.ToLower(j.args["day"])
			var d time.Time
			switch {
			case j.args["week"] != "":
				d, parseErr := time.Parse("2006-1-2", j.args["week"])
				if parseErr != nil {
					return "There is no such day."
				}
				return code(j.args["week"]) + " is a **" + d.Weekday().String() + "**."
			case strings.HasPrefix(word, "christmas"):
				d = time.Date(today.Year(), 12, 25, 0, 0, 0, 0, time.UTC)
			case strings.HasPrefix(word, "new year"):
				d = time.Date(today.Year()+1, 1, 1, 0, 0, 0, 0, time.UTC)
			case strings.HasSuffix(word, "year"):
				d = time.Date(today.Year(), 12, 31, 0, 0, 0, 0, time.UTC)
			case strings.HasSuffix(word, "month"):
				d = time.Date(today.Year(), today.Month()+1, 0, 0, 0, 0, 0, time.UTC)
			default:
				parsed, parseErr := time.Parse("2006-1-2", word)
				if parseErr != nil {
					return "There is no such day."
				}
				d = parsed
			}
			if d.Before(today) && strings.HasPrefix(word, "christmas") {
				d = d.AddDate(1, 0, 0)
			}
			days := int(math.Round(d.Sub(today).Hours() / 24))
			switch {
			case days == 0:
				return "That is today."
			case days < 0:
				return fmt.Sprintf("That was **%s ago**, on a %s.", count(-days, "day"), d.Weekday())
			}
			return fmt.Sprintf("**%s**, until %s.", count(days, "day"), d.Format("Monday, 2 January 2006"))
		},
		no: "I did not look",
	},
	{
		name:     "calendar",
		example:  "show the calendar",
		patterns: []string{`^(?:{show} )?(?:the |a |this month's )?calendar(?: (?:of|for) this month)?$`, `^cal$`},
		plan:     steps(run("today's date", now)),
		answer: func(j *job) string {
			today, err := readNow(j)
			if err != "" {
				return err
			}
			first := time.Date(today.Year(), today.Month(), 1, 0, 0, 0, 0, time.UTC)
			var b strings.Builder
			b.WriteString(first.Format("January 2006") + "\nMo Tu We Th Fr Sa Su\n")
			column := (int(first.Weekday()) + 6) % 7
			b.WriteString(strings.Repeat("   ", column))
			for d := first; d.Month() == first.Month(); d = d.AddDate(0, 0, 1) {
				end := " "
				if column == 6 {
					end = "\n"
				}
				fmt.Fprintf(&b, "%2d%s", d.Day(), end)
				column = (column + 1) % 7
			}
			return "Today is **" + today.Format("Monday, 2 January") + "**.\n\n" + fence("", b.String(), 10, true)
		},
		no: "I did not look",
	},
	{
		name:    "date",
		example: "what day is it",
		patterns: []string{
			`^(?:what(?:'s| is)? )?(?:the )?(?:current )?(?:date|time|day|weekday|date and time|time and date|week number|calendar week)(?: (?:is it|today|now|of the week|is today))*$`, `^(?:what|which) (?:day|date|time|week|month|year)(?: (?:is|of the week is))? (?:it|today|now|this)$`, `^(?:date|now|today|clock)$`,
		},
		plan: steps(run("date and time", now)),
		answer: func(j *job) string {
			today, err := readNow(j)
			if err != "" {
				return err
			}
			f := strings.Fields(j.last().text)
			_, week := today.ISOWeek()
			return fmt.Sprintf("It is **%s**, %s (%s), week %d.", today.Format("Monday, 2 January 2006"), f[1], visible(f[2]), week)
		},
		no: "I did not look",
	},
	{
		name:    "sum",
		example: "what is 17 * 23",
		patterns: []string{
			`^(?:what(?:'s| is)|calculate|compute|calc|evaluate|how much is|=)?\s*(?P<sum>[-+(]*\s*[\d.][\d.,\s()+*/%^x×÷-]*(?:\+|-|\*|/|%|\^|x|×|÷)\s*[\d.,\s()+*/%^x×÷-]*[\d.)])\s*=?$`,
			`^(?:what(?:'s| is)|how much is) (?P<percent>[\d.]+) ?(?:%|percent) of (?P<of>[\d.,]+)$`,
		},
		answer: func(j *job) string {
			said := j.args["sum"]
			if p := j.args["percent"]; p != "" {
				said = p + "/100*" + j.args["of"]
			}
			v, ok := evaluate(said)
			if !ok || math.IsInf(v, 0) || math.IsNaN(v) {
				return "That does not come out as a number."
			}
			return "**" + strconv.FormatFloat(v, 'f', -1, 64) + "**"
		},
	},
}

// now is a date that can be read back, in the user's own time zone.
const now = "date '+%Y-%m-%d %H:%M %Z'"

// readNow reads what now printed; errText is the answer where it printed something else.
func readNow(j *job) (today time.Time, errText string) {
	r := j.last()
	f := strings.Fields(r.text)
	if !r.ok() || len(f) < 3 {
		return time.Time{}, trouble(r)
	}
	today, err := time.Parse(time.DateOnly, f[0])
	if err != nil {
		return time.Time{}, trouble(r)
	}
	return today, ""
}

// evaluate works out a sum of numbers with + - * / % ^ and brackets. Commas part thousands.
func evaluate(s string) (float64, bool) {
	p := &sum{rest: strings.NewReplacer("×", "*", "÷", "/", "x", "*", ",", "", " ", "").Replace(s)}
	v := p.terms(0)
	return v, !p.bad && p.rest == ""
}

type sum struct {
	rest string
	bad  bool
}

func (p *sum) take(set string) byte {
	if p.rest != "" && strings.IndexByte(set, p.rest[0]) >= 0 {
		c := p.rest[0]
		p.rest = p.rest[1:]
		return c
	}
	return 0
}

func (p *sum) terms(depth int) float64 {
	v := p.factors(depth)
	for {
		switch p.take("+-") {
		case '+':
			v += p.factors(depth)
		case '-':
			v -= p.factors(depth)
		default:
			return v
		}
	}
}

func (p *sum) factors(depth int) float64 {
	v := p.power(depth)
	for {
		switch p.take("*/%") {
		case '*':
			if p.take("*") != 0 { // 2**3
				v = math.Pow(v, p.power(depth))
			} else {
				v *= p.power(depth)
			}
		case '/':
			v /= p.power(depth)
		case '%':
			v = math.Mod(v, p.power(depth))
		default:
			return v
		}
	}
}

func (p *sum) power(depth int) float64 {
	if depth > 50 {
		p.bad = true
		return 0
	}
	if p.take("-") != 0 {
		return -p.power(depth + 1)
	}
	p.take("+")
	var v float64
	if p.take("(") != 0 {
		v = p.terms(depth + 1)
		if p.take(")") == 0 {
			p.bad = true
		}
	} else {
		n := 0
		for n < len(p.rest) && (p.rest[n] >= '0' && p.rest[n] <= '9' || p.rest[n] == '.') {
			n++
		}
		f, err := strconv.ParseFloat(p.rest[:n], 64)
		if err != nil {
			p.bad = true
			p.rest = ""
			return 0
		}
		v, p.rest = f, p.rest[n:]
	}
	if p.take("^") != 0 {
		return math.Pow(v, p.power(depth+1))
	}
	return v
}
