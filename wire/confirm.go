package wire

// ConfirmationRequest asks the user. It goes to every client attached to the session that has CapConfirm; the first
// answer decides. Since protocol 1.
type ConfirmationRequest struct {
	Event
	ConfirmationID ConfirmationID `msgpack:"confirmation_id"`
	ExecutionID    ExecutionID    `msgpack:"execution_id"`
	Agent          string         `msgpack:"agent"`
	Tool           string         `msgpack:"tool"`
	Command        OSString       `msgpack:"command"`   // for bash
	Arguments      string         `msgpack:"arguments"` // a JSON object as text
	Cwd            OSString       `msgpack:"cwd"`
	Verdict        Verdict        `msgpack:"verdict"`
	Reach          string         `msgpack:"reach"`       // what it would run with: read, project, shell, free; "" = cannot be enforced here
	ReachWhy       string         `msgpack:"reach_why"`   // the agent's reason, where it asked for a wider reach than Verdict.Reach
	EnforcedBy     string         `msgpack:"enforced_by"` // the mechanism that enforces Reach, for people; "" = none
	Preview        Preview        `msgpack:"preview"`
	Grants         []Grant        `msgpack:"grants"` // what allow_always may be answered with; empty: only once
	ExpiresAtMS    *int64         `msgpack:"expires_at_ms"`
	Fingerprint    string         `msgpack:"fingerprint"` // see Fingerprint
	Borrower       Borrower       `msgpack:"borrower"`    // whose command it is; without a name, an agent of the daemon
	Fixed          bool           `msgpack:"fixed"`       // the command cannot be changed, since another program makes the call: with an EditedCommand it is refused
	Parent         SessionID      `msgpack:"parent"`      // of an agent in the background: the session that started it, whose clients are asked, too; "" = none
}

// Verdict is what the risk analysis found.
type Verdict struct {
	Level      string   `msgpack:"level"` // low, medium, high, critical
	Reasons    []Reason `msgpack:"reasons"`
	Reversible bool     `msgpack:"reversible"`
	UndoHint   string   `msgpack:"undo_hint"`
	Reach      string   `msgpack:"reach"` // the narrowest that the command needs: read, project, shell, free; "" = not judged
}

type Reason struct {
	Text   string `msgpack:"text"`
	Span   *Span  `msgpack:"span"`
	Effect string `msgpack:"effect"` // read, write, delete, run-code, network, privilege, signal, shell-state, persistence, secret, history, unknown
}

// Span is a half-open range of bytes in the command's text.
type Span struct {
	Start int `msgpack:"start"`
	End   int `msgpack:"end"`
}

type Preview struct {
	Type    string `msgpack:"type"` // none, diff, text
	Content string `msgpack:"content"`
}

// Grant is a standing permission on offer.
type Grant struct {
	Scope  string `msgpack:"scope"`  // session, project, always
	Rule   string `msgpack:"rule"`   // as it would be listed
	Covers string `msgpack:"covers"` // in words, exactly what it would allow
}

// ConfirmationResponse answers a ConfirmationRequest. After ConfirmationResolved it has no effect. Since protocol 1.
type ConfirmationResponse struct {
	ConfirmationID ConfirmationID `msgpack:"confirmation_id"`
	Decision       string         `msgpack:"decision"` // allow, allow_always, deny, deny_always
	Grant          *Grant         `msgpack:"grant"`    // with allow_always and deny_always: one of those offered
	EditedCommand  *OSString      `msgpack:"edited_command"`
	Comment        string         `msgpack:"comment"`
}

// Values of ConfirmationRequest.Tool that are about no effects of a tool.
const (
	ToolTrust    = "trust"    // whether agents follow a folder's instructions
	ToolContinue = "continue" // whether an agent that repeats itself, or has reached its cost limit, may go on
	ToolPlan     = "plan"     // a plan; Preview has its steps, a line for each, and EditedCommand as well
	ToolAskUser  = "ask_user" // a question of an agent of another program; the user's answer is the Comment
)

const (
	DecisionAllow       = "allow"
	DecisionAllowAlways = "allow_always"
	DecisionDeny        = "deny"
	DecisionDenyAlways  = "deny_always"
)

// ConfirmationResolved reports to every attached client how a question ended. Since protocol 1.
type ConfirmationResolved struct {
	Event
	ConfirmationID ConfirmationID `msgpack:"confirmation_id"`
	Decision       string         `msgpack:"decision"`
	By             string         `msgpack:"by"` // "client NAME PID", "rule ID", "expiry", "cancel", "nobody"
	Comment        string         `msgpack:"comment"`
}

// PolicyRequest reads or changes mode and rules; PolicyReply answers. Since protocol 1.
type PolicyRequest struct {
	RequestID `msgpack:"request_id"`
	SessionID *SessionID `msgpack:"session_id"`
	Op        string     `msgpack:"op"` // get, set_mode, list, add, revoke, test, accept, set_secrets, trust, untrust, trust_list
	Mode      string     `msgpack:"mode"`
	Rule      *Rule      `msgpack:"rule"`
	RuleID    RuleID     `msgpack:"rule_id"`
	Command   OSString   `msgpack:"command"` // with test: shell text that is judged, and not run
	Cwd       OSString   `msgpack:"cwd"`     // with test: where; "" = the shell's directory. With trust and untrust: the folder
	Live      bool       `msgpack:"live"`    // with test: judge for the shell last typed in; an error where there is none
	Secrets   string     `msgpack:"secrets"` // with set_secrets: mask, show
	// Suspects are, with accept, the names that the user was shown: those of the last PolicyReply, of which what means something else
	// since is not accepted. Empty = all that are suspect by now.
	Suspects []string `msgpack:"suspects"`
}

type PolicyReply struct {
	RequestID `msgpack:"request_id"`
	Op        string `msgpack:"op"`
	Mode      string `msgpack:"mode"`
	Rules     []Rule `msgpack:"rules"`
	// Secrets is how text that looks like a secret is given to models in this session: mask, show.
	Secrets string `msgpack:"secrets"`
	// Suspects are the variables, aliases and functions of the shell that agents' commands changed without being asked about.
	Suspects []string        `msgpack:"suspects"`
	Verdict  *Verdict        `msgpack:"verdict"`  // of test
	Outcomes []PolicyOutcome `msgpack:"outcomes"` // of test: one for each mode that is offered
	// Folder is the one of trust and untrust. Folders, with these and trust_list, are all that the user decided about.
	Folder  OSString        `msgpack:"folder"`
	Folders []TrustedFolder `msgpack:"folders"`
}

// TrustedFolder is a folder that the user decided about: whether its AGENTS.md and the like instruct agents.
type TrustedFolder struct {
	Path        OSString `msgpack:"path"`
	Trusted     bool     `msgpack:"trusted"`
	DecidedAtMS int64    `msgpack:"decided_at_ms"`
}

// PolicyOutcome is what would be done with a command in a mode.
type PolicyOutcome struct {
	Mode     string `msgpack:"mode"`     // plan, ask, auto, full
	Decision string `msgpack:"decision"` // allow, ask, deny
	RuleID   RuleID `msgpack:"rule_id"`  // that decided; "" = the mode did
	Rule     string `msgpack:"rule"`     // its pattern
	Why      string `msgpack:"why"`
}

// Rule is a standing decision.
type Rule struct {
	ID          RuleID   `msgpack:"id"`
	Decision    string   `msgpack:"decision"` // allow, ask, deny
	Pattern     string   `msgpack:"pattern"`
	Scope       string   `msgpack:"scope"`   // session, project, always
	Subject     OSString `msgpack:"subject"` // the session's id or the project's folder, by scope
	Source      string   `msgpack:"source"`  // user, config, project file
	CreatedAtMS int64    `msgpack:"created_at_ms"`
	ExpiresAtMS *int64   `msgpack:"expires_at_ms"`
	Match       []string `msgpack:"match"`    // examples that Pattern must match: commands, paths or hosts, by its kind
	NoMatch     []string `msgpack:"no_match"` // examples that Pattern must not match
	Fault       string   `msgpack:"fault"`    // why the rule contradicts its examples or is invalid: an allow rule is then ignored; "" = none
}

func (*ConfirmationResponse) isMessage() {}

func (*PolicyRequest) AnsweredBy() *PolicyReply { return nil }
