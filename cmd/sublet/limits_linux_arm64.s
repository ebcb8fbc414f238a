#include "textflag.h"

#define PRLIMIT 261
#define GETEUID 175
#define WRITE 64
#define EXIT_GROUP 94

// sublet_entry is where the kernel starts the program; see limits_linux.go. The stack is as execve(2) left it.
TEXT sublet_entry(SB),NOSPLIT|NOFRAME,$0
	MOVD $9, R1 // RLIMIT_AS
	MOVD main·leastSpace(SB), R9
	MOVD main·noSpace(SB), R10
	MOVD main·noSpace+8(SB), R11
	BL sublet_limit(SB)
	MOVD $GETEUID, R8
	SVC
	CBZW R0, start
	MOVD $6, R1 // RLIMIT_NPROC
	MOVD main·leastTasks(SB), R9
	MOVD main·noTasks(SB), R10
	MOVD main·noTasks+8(SB), R11
	BL sublet_limit(SB)
start:
	JMP _rt0_arm64_linux(SB)

// sublet_limit ends the program with the message at R10, of R11 bytes, if the limit R1 is below R9.
TEXT sublet_limit(SB),NOSPLIT|NOFRAME,$0
	SUB $16, RSP
	MOVD $PRLIMIT, R8
	MOVD $0, R0 // of this process
	MOVD $0, R2 // no new one
	MOVD RSP, R3
	SVC
	MOVD (RSP), R12
	ADD $16, RSP
	CBNZ R0, ok // an old kernel: the runtime finds out by itself
	CMP R9, R12
	BHS ok
	MOVD $WRITE, R8
	MOVD $2, R0
	MOVD R10, R1
	MOVD R11, R2
	SVC
	MOVD $EXIT_GROUP, R8
	MOVD $1, R0
	SVC
ok:
	RET
