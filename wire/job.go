package wire

// JobRequest lists background jobs that agents started, reads the output of one, ends one, or has running commands go on as
// jobs. JobReply answers. Since protocol 1.
type JobRequest struct {
	RequestID `msgpack:"request_id"`
	Op        string `msgpack:"op"`      // list, read, kill, background
	JobID     string `msgpack:"job_id"`  // of read and kill
	Offset    int64  `msgpack:"offset"`  // read: byte offset in the output; negative: its newest Limit bytes
	Limit     int    `msgpack:"limit"`   // read: bytes at most; 0 = 64 KiB
	WaitMS    int64  `msgpack:"wait_ms"` // read: how long to wait for output after Offset or for the job's end, at most 60 s
}

// JobReply has all jobs, or the one that was asked for. Since protocol 1.
type JobReply struct {
	RequestID `msgpack:"request_id"`
	Jobs      []Job  `msgpack:"jobs"`
	Output    []byte `msgpack:"output"`
	Offset    int64  `msgpack:"offset"` // of Output's first byte; greater than requested where older output is not kept
}

// Job is a background job.
type Job struct {
	JobID       string    `msgpack:"job_id"`
	SessionID   SessionID `msgpack:"session_id"`
	Agent       string    `msgpack:"agent"`
	Command     OSString  `msgpack:"command"`
	Cwd         OSString  `msgpack:"cwd"`
	Shell       string    `msgpack:"shell"` // which one it is a job of, for people
	Reach       string    `msgpack:"reach"` // its confinement: read, project; "" = none
	PID         int       `msgpack:"pid"`   // the leader of its process group
	State       string    `msgpack:"state"` // running, stopped, ended
	ExitCode    *int      `msgpack:"exit_code"`
	Note        string    `msgpack:"note"` // for people: who ended it, or that a new daemon found it again
	StartedAtMS int64     `msgpack:"started_at_ms"`
	EndedAtMS   int64     `msgpack:"ended_at_ms"` // 0 while it runs
	Bytes       int64     `msgpack:"bytes"`       // of output; the newest 16 MiB are kept
	OutputPath  OSString  `msgpack:"output_path"`
	Wake        string    `msgpack:"wake"` // when its agent is woken: "" = never, $end, else a pattern for a line of its output
	// Terminal reports that it went on as a job of the user's shell and prints to its terminal: only what it printed before is in
	// its output, and its exit status is not known.
	Terminal bool `msgpack:"terminal"`
}

func (*JobRequest) AnsweredBy() *JobReply { return nil }
