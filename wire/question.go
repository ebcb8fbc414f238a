package wire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

const (
	maxQuestion = 2000 // bytes of a question
	maxChoice   = 200  // bytes of one answer on offer
	maxChoices  = 9    // there are keys for so many
)

// UserQuestion is what an agent of another program asks the user: the arguments of ToolAskUser, as JSON.
type UserQuestion struct {
	Question string   `json:"question" jsonschema:"what to ask, at most 2000 bytes"`
	Choices  []string `json:"choices,omitempty" jsonschema:"answers on offer, at most 9; the user may answer in their own words as well"`
}

// ParseUserQuestion reads and checks a question. The error is for whoever asked.
func ParseUserQuestion(arguments string) (q UserQuestion, err error) {
	if err := json.Unmarshal([]byte(arguments), &q); err != nil {
		return q, err
	}
	return q, q.Check()
}

// Check returns an error that names the first part of q that is missing or too long, for whoever asks the question; nil if none is.
func (q UserQuestion) Check() error {
	switch {
	case strings.TrimSpace(q.Question) == "" || len(q.Question) > maxQuestion:
		return fmt.Errorf("question: want 1 to %d bytes", maxQuestion)
	case len(q.Choices) > maxChoices:
		return fmt.Errorf("choices: %d are more than %d", len(q.Choices), maxChoices)
	case slices.ContainsFunc(q.Choices, func(c string) bool { return strings.TrimSpace(c) == "" || len(c) > maxChoice }):
		return fmt.Errorf("choices: want 1 to %d bytes each", maxChoice)
	}
	return nil
}
