#include "textflag.h"

#define PRLIMIT 302
#define GETEUID 107
#define WRITE 1
#define EXIT_GROUP 231

// sublet_entry is where the kernel starts the program; see limits_linux.go. The stack is as execve(2) left it, and what lies
// below it is free.
TEXT sublet_entry(SB),NOSPLIT|NOFRAME,$0
	MOVQ $9, SI // RLIMIT_AS
	MOVQ main·leastSpace(SB), R12
	MOVQ main·noSpace(SB), R13
	MOVQ main·noSpace+8(SB), R14
	CALL sublet_limit(SB)
	MOVQ $GETEUID, AX
	SYSCALL
	TESTL AX, AX
	JEQ start
	MOVQ $6, SI // RLIMIT_NPROC
	MOVQ main·leastTasks(SB), R12
	MOVQ main·noTasks(SB), R13
	MOVQ main·noTasks+8(SB), R14
	CALL sublet_limit(SB)
start:
	JMP _rt0_amd64_linux(SB)

// sublet_limit ends the program with the message at R13, of R14 bytes, if the limit SI is below R12.
TEXT sublet_limit(SB),NOSPLIT|NOFRAME,$0
	MOVQ $PRLIMIT, AX
	MOVQ $0, DI // of this process
	MOVQ $0, DX // no new one
	LEAQ -32(SP), R10
	SYSCALL
	TESTQ AX, AX
	JNE ok // an old kernel: the runtime finds out by itself
	CMPQ R12, -32(SP)
	JLS ok
	MOVQ $WRITE, AX
	MOVQ $2, DI
	MOVQ R13, SI
	MOVQ R14, DX
	SYSCALL
	MOVQ $EXIT_GROUP, AX
	MOVQ $1, DI
	SYSCALL
ok:
	RET
