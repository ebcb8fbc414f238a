# A library and a program of C, built by make.
mkdir -p src include tests docs tools
cat > include/calc.h <<'EOF'
#ifndef CALC_H
#define CALC_H
/* Evaluates "1+2*3"; returns 0 on success. */
int calc(const char *text, long *result);
#endif
EOF
cat > src/calc.c <<'EOF'
#include <stdlib.h>
#include "calc.h"

static long factor(const char **p) { return strtol(*p, (char **)p, 10); }

static long term(const char **p)
{
	long v = factor(p);
	while (**p == '*') {
		++*p;
		v *= factor(p);
	}
	return v; /* TODO: division */
}

int calc(const char *text, long *result)
{
	const char *p = text;
	long v = term(&p);
	while (*p == '+') {
		++p;
		v += term(&p);
	}
	*result = v;
	return *p != 0;
}
EOF
cat > src/main.c <<'EOF'
#include <stdio.h>
#include "calc.h"

int main(int argc, char **argv)
{
	long v;
	if (argc < 2 || calc(argv[1], &v))
		return 2;
	printf("%ld\n", v);
	return 0;
}
EOF
cat > tests/test_calc.c <<'EOF'
#include <assert.h>
#include "calc.h"

int main(void)
{
	long v;
	assert(calc("1+2*3", &v) == 0 && v == 7);
	assert(calc("1+x", &v) != 0);
	return 0;
}
EOF
cat > Makefile <<'EOF'
CFLAGS ?= -O1 -g -Wall -Wextra
CPPFLAGS += -Iinclude -MMD
B := build
all: $(B)/calc
$(B)/%.o: src/%.c | $(B)
	$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<
$(B)/libcalc.a: $(B)/calc.o
	$(AR) rcs $@ $^
$(B)/calc: $(B)/main.o $(B)/libcalc.a
	$(CC) -o $@ $^
$(B)/test_calc: tests/test_calc.c $(B)/libcalc.a
	$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $^
test: $(B)/test_calc
	./$(B)/test_calc && echo passed
install: all
	install -d $(DESTDIR)$(PREFIX)/bin && install -m 755 $(B)/calc $(DESTDIR)$(PREFIX)/bin
clean:
	rm -rf $(B)
$(B):
	mkdir -p $@
.PHONY: all test install clean
-include $(wildcard $(B)/*.d)
EOF
cat > configure <<'EOF'
#!/bin/sh
echo "CC = ${CC:-cc}" > config.mk
echo configured
EOF
chmod +x configure
printf '/build/\n*.o\nconfig.mk\nstage/\n' > .gitignore
printf '# calc\n\n    make && build/calc 1+2*3\n' > README.md
printf 'calc - evaluates\n' > docs/calc.txt
printf '#!/bin/sh\ngrep -c . src/*.c\n' > tools/count.sh; chmod +x tools/count.sh
