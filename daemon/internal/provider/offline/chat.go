package offline

import (
	"strings"
)

// How a real model is connected: the lines every answer of last resort ends with. Names of keys are those of
// daemon/config.
const (
	configPath = "`sublet config path`"
	connect    = "To connect a real model: `export ANTHROPIC_API_KEY=…` (or `OPENAI_API_KEY`, `GEMINI_API_KEY`) and put one line into the file that " +
		configPath + " names, such as `model = \"anthropic/claude-sonnet-4-5\"`, or `model = \"ollama/NAME\"` for a model of your own machine."
)

var chatIntents = []intent{
	{
		name: "hello",
		patterns: []string{
			`^(?:hi|hello|hey|hiya|howdy|yo|good (?:morning|afternoon|evening)|greetings)(?: there| sublet| all)?$`,
			`^how are you(?: doing)?(?: today)?$`,
		},
		answer: func(j *job) string {
			where := ""
			if j.facts.Cwd != "" {
				where = " You are in " + code(j.facts.Cwd) + "."
			}
			return "Hello! I am the built-in offline model: fixed rules, no network." + where + " Try “what is in here”, “what changed”, “run the tests” or “help”."
		},
	},
	{
		name:     "thanks",
		patterns: []string{`^(?:many )?(?:thanks|thank you|thx|ty|cheers)(?: a lot| so much| very much)?$`, `^(?:great|nice|cool|perfect|awesome|good job|well done|ok|okay|never ?mind|no|yes|bye|goodbye)$`},
		answer:   func(*job) string { return "Fine. Ask when there is something else." },
	},
	{
		name:    "help",
		example: "what can you do",
		patterns: []string{
			`^(?:help|\?|usage|commands|intents)$`,
			`^what (?:can|could|do) (?:you|i|it) (?:do|say|ask|help)\b`,
			`^what (?:are you able|do you know how) to`,
			`^(?:show|list) (?:me )?(?:your|the|all) (?:commands|intents|abilities|features|skills)`,
			`^how (?:do i|can i|to) (?:use|work with) (?:this|you|sublet)`,
		},
		answer: help,
	},
	{
		name: "who",
		patterns: []string{
			`^(?:who|what) are you\b`, `^what(?:'s| is) (?:your name|sublet|this)$`, `^(?:what|which) (?:model|llm|ai) (?:are you|is this|do you use|am i (?:using|talking to))`,
			`^are you (?:an? )?(?:ai|llm|model|bot|human|gpt|claude|real)`,
		},
		answer: func(*job) string {
			return "I am **offline**, the model built into sublet: a table of rules for everyday jobs in a shell. I send nothing anywhere and I do not understand language beyond my patterns. “help” lists what I know.\n\n" + connect
		},
	},
	{
		name: "connect",
		patterns: []string{
			`\b(?:connect|use|set ?up|configure|switch to|add|enable)\b.*\b(?:real|another|other|different|better|proper)? ?(?:model|llm|claude|gpt|openai|anthropic|gemini|ollama|api key)\b`,
			`\bapi key\b`,
		},
		answer: func(*job) string {
			return connect + "\n\nFor any other server that speaks the OpenAI protocol (llama.cpp, vLLM, LM Studio, OpenRouter):\n\n```toml\nmodel = \"local/NAME\"\n\n[provider.local]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:8080/v1\"\n```\n\nKeys come from the environment (`api_key_env`) or a command (`api_key_command`), never from the file. `sublet config check` tells whether the file is right."
		},
	},
	{
		name: "download",
		patterns: []string{
			`^(?:download|fetch|wget|curl|install .* from) .*(?:https?://|ftp://)\S+`, `^(?:git )?clone (?:the )?(?:repo(?:sitory)? )?(?:https?://|git@|ssh://)\S+`,
			`^(?:download|search (?:the )?(?:web|internet|online)|google|look up online)\b`,
		},
		answer: func(j *job) string {
			url := urls.FindString(j.said)
			if url == "" {
				return "I fetch nothing from the network: offline is what I am. Run `curl` or your browser yourself, or connect a model that decides such things.\n\n" + connect
			}
			command := "curl -fLO " + quote(url)
			if strings.Contains(j.said, "clone") {
				command = "git clone " + quote(url)
			}
			return "I fetch nothing from the network, and I cannot judge what would come. To do it yourself: press Tab and run\n\n" + fence("sh", command, 3, true)
		},
	},
}

var urls = rx(`(?:https?|ftp|ssh)://[^\s"'<>]+|git@[^\s"'<>]+`)

// help lists one example for each intent that has one, by subject.
func help(*job) string {
	var b strings.Builder
	b.WriteString("I am the built-in offline model. I know these by rule; each runs through your shell, and what could change something is asked first:\n")
	for _, group := range []struct {
		title string
		list  []intent
	}{
		{"Looking around", fileIntents},
		{"Files", fileOpIntents},
		{"The project", projectIntents},
		{"Git", append(append([]intent{}, gitIntents...), gitWriteIntents...)},
		{"The machine", append(append([]intent{}, systemIntents...), processIntents...)},
		{"Dates and sums", clockIntents},
		{"More", append(append([]intent{}, whyIntents...), delegateIntents...)},
	} {
		var examples []string
		for _, in := range group.list {
			if in.example != "" {
				examples = append(examples, "“"+in.example+"”")
			}
		}
		b.WriteString("\n- **" + group.title + "**: " + strings.Join(examples, ", "))
	}
	b.WriteString("\n\nJoin jobs with “then”: “run the tests then commit this”.\n\n" + connect)
	return b.String()
}

// unknown is the answer of last resort: what it is, what comes nearest, how to get more.
func unknown(j *job) string {
	var b strings.Builder
	b.WriteString("I am the built-in offline model, a table of rules, and I have none for that.")
	if near := nearest(j.said); len(near) > 0 {
		b.WriteString(" The nearest things I can do:\n")
		for _, n := range near {
			b.WriteString("\n- “" + n + "”")
		}
		b.WriteString("\n\n“help” lists the rest. ")
	} else {
		b.WriteString(" “help” lists what I can do. ")
	}
	b.WriteString(connect)
	return b.String()
}

// nearest are the examples that share the most telling words with s, at most three.
func nearest(s string) []string {
	said := stems(s)
	if len(said) == 0 {
		return nil
	}
	type hit struct {
		example string
		score   int
	}
	var hits []hit
	for _, c := range table() {
		if c.intent.example == "" {
			continue
		}
		have := stems(c.intent.example + " " + c.intent.name)
		score := 0
		for w := range said {
			if have[w] {
				score += len(w)
			}
		}
		if score >= 4 {
			hits = append(hits, hit{c.intent.example, score})
		}
	}
	var best []string
	for len(best) < 3 && len(hits) > 0 {
		top := 0
		for i, h := range hits {
			if h.score > hits[top].score {
				top = i
			}
		}
		best = append(best, hits[top].example)
		hits = append(hits[:top], hits[top+1:]...)
	}
	return best
}

// stems are the telling words of s, roughly without their endings.
func stems(s string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return r < 'a' || r > 'z' }) {
		if len(w) < 3 || stopWords[w] {
			continue
		}
		for _, end := range []string{"ing", "ies", "es", "ed", "s"} {
			if t := strings.TrimSuffix(w, end); t != w && len(t) >= 3 {
				w = t
				break
			}
		}
		set[w] = true
	}
	return set
}

var stopWords = map[string]bool{
	"the": true, "and": true, "for": true, "this": true, "that": true, "with": true, "from": true, "into": true, "what": true, "how": true, "who": true, "why": true,
	"can": true, "you": true, "are": true, "does": true, "did": true, "have": true, "has": true, "please": true, "make": true, "all": true, "show": true, "give": true, "get": true, "some": true, "any": true, "here": true, "there": true, "much": true, "many": true, "would": true, "should": true, "could": true, "about": true, "txt": true, "name": true,
}
