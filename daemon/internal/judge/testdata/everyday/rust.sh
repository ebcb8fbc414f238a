# A crate with a library, a program, an example and tests, without dependencies.
mkdir -p src tests examples docs
cat > Cargo.toml <<'EOF'
[package]
name = "roman"
version = "0.2.1"
edition = "2021"

[features]
loud = []
EOF
cat > src/lib.rs <<'EOF'
//! Roman numerals.

/// Writes a number.
///
/// ```
/// assert_eq!(roman::write(14), "XIV");
/// ```
pub fn write(mut n: u32) -> String {
    const T: [(u32, &str); 13] = [
        (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"),
        (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
    ];
    let mut s = String::new();
    for (v, t) in T {
        while n >= v {
            s.push_str(t);
            n -= v;
        }
    }
    s // TODO: read them, too
}

#[cfg(test)]
mod tests {
    #[test]
    fn writes() {
        assert_eq!(super::write(1994), "MCMXCIV");
    }
}
EOF
cat > src/main.rs <<'EOF'
fn main() {
    for a in std::env::args().skip(1) {
        match a.parse() {
            Ok(n) => println!("{}", roman::write(n)),
            Err(_) => std::process::exit(2),
        }
    }
}
EOF
cat > tests/net.rs <<'EOF'
use std::net::{TcpListener, TcpStream};

#[test]
fn connects() {
    let l = TcpListener::bind("127.0.0.1:0").unwrap();
    TcpStream::connect(l.local_addr().unwrap()).unwrap();
}
EOF
echo 'fn main() { println!("{}", roman::write(2024)); }' > examples/year.rs
printf 'all:\n\tcargo build\ncheck:\n\tcargo check -q && cargo test -q --lib\n.PHONY: all check\n' > Makefile
printf '/target\n' > .gitignore
printf '# roman\n\nNumerals.\n' > README.md
printf '# Notes\n\n- read numerals\n' > docs/notes.md
printf 'max_width = 100\n' > rustfmt.toml
cargo generate-lockfile --offline -q
