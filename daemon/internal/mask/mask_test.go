package mask

import (
	"crypto/rand"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// secretSamples are made up: each has the form of a real secret. They are put together from parts, so that scanners of
// repositories do not take them for one.
var secretSamples = map[string]string{
	"aws":         "AKIA" + "IOSFODNN7EXAMPLE",
	"github":      "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",
	"gitlab":      "glpat-" + "xYz12AbC34dEf56GhI78",
	"anthropic":   "sk-ant-" + "api03-abcDEF123456789_abcDEF123456789-abcDEF",
	"openai":      "sk-proj-" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5z",
	"slack":       "xoxb-" + "123456789012-abcdefGHIJKL",
	"stripe":      "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
	"google":      "AIza" + "SyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY",
	"jwt":         "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
	"npm":         "npm_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5",
	"huggingface": "hf_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3x",
	"sendgrid":    "SG." + "aB3dE5fG7hI9jK1lM3nO5p.Q7rS9tU1vW3xY5zaB3dE5fG7hI9jK1lM3nO5pQ",
}

// TestMaskKnown: each known format goes, wherever it stands, and what surrounds it stays (section 7).
func TestMaskKnown(t *testing.T) {
	for kind, secret := range secretSamples {
		for _, around := range []string{"%s", "key %s here", "a=%s", "\"%s\"", "x:%s,", "(%s)", "%s\n", "url?k=%s&x=1", "ä%sö", "[%s]"} {
			text := strings.Replace(around, "%s", secret, 1)
			got := String(text)
			if strings.Contains(got, secret) || strings.Contains(got, secret[8:]) {
				t.Errorf("%s: String(%q) = %q, the secret is still there", kind, text, got)
			}
			before, after, _ := strings.Cut(around, "%s")
			if !strings.HasPrefix(got, before) || !strings.HasSuffix(got, after) {
				t.Errorf("%s: String(%q) = %q, what surrounds it changed", kind, text, got)
			}
		}
	}
}

func TestMaskForms(t *testing.T) {
	for text, secret := range map[string]string{
		"PASSWORD=hunter22!":                                                                 "hunter22!",
		"export DB_PASSWORD='s3cr3t pass'":                                                   "s3cr3t pass",
		"AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MD":                                           "wJalrXUtnFEMI/K7MD",
		`{"api_key": "abcd1234efgh"}`:                                                        "abcd1234efgh",
		`{\"password\":\"abcd1234\"}`:                                                        "abcd1234",
		"read -rsp 'Password: hunter22' p; x":                                                "hunter22",
		"echo -n 'password: ' hunter22 'x'":                                                  "hunter22",
		"read -p 'x' y; echo 'password: hunter22' p":                                         "hunter22",
		"read -rsp 'Password: ' p <<< password:hunter22":                                     "hunter22",
		"password: correcthorse\n":                                                           "correcthorse",
		"  client_secret: \"abc123def\"":                                                     "abc123def",
		"--password hunter22":                                                                "hunter22",
		"--token=abc123def456":                                                               "abc123def456",
		"curl -H 'Authorization: Bearer abc.def.ghi' x":                                      "abc.def.ghi",
		"Authorization: Basic dXNlcjpwYXNz":                                                  "dXNlcjpwYXNz",
		"authorization: token abcdef123":                                                     "abcdef123",
		"postgres://bob:s3cret@db/x":                                                         "s3cret",
		"https://x:abcdef@github.com/a/b":                                                    "abcdef",
		"https://" + secretSamples["github"] + "@github.com/a/b":                             secretSamples["github"],
		"https://k9Jx2mQ7vR4tYb8LwZ1nCd5H@github.com/a/b":                                    "k9Jx2mQ7vR4tYb8LwZ1nCd5H",
		"Cookie: session=abc123":                                                             "session=abc123",
		"const apiKey = \"abcd1234efgh\"":                                                    "abcd1234efgh",
		"apiKey: 'abcd1234efgh',":                                                            "abcd1234efgh",
		"FOO=" + "k9Jx2mQ7vR4tYb8LwZ1nCd5HsGf3PaEu":                                          "k9Jx2mQ7vR4tYb8LwZ1nCd5HsGf3PaEu",
		"export STRIPE='k9Jx2mQ7vR4tYb8LwZ1nCd5HsGf3PaEu+/='":                                "k9Jx2mQ7vR4tYb8LwZ1nCd5HsGf3PaEu",
		"X-Custom: k9Jx2mQ7vR4tYb8LwZ1nCd5HsGf3PaEu\n":                                       "k9Jx2mQ7vR4tYb8LwZ1nCd5HsGf3PaEu",
		"secret := \"abcd1234efgh\"":                                                         "abcd1234efgh",
		"-----BEGIN RSA PRIVATE KEY-----\nMIIabc\ndef\n-----END RSA PRIVATE KEY-----":        "MIIabc",
		"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk":                               "b3BlbnNzaC1rZXk",
		"-----BEGIN PRIVATE KEY-----\\nMIIabc\\n-----END PRIVATE KEY-----\\n":                "MIIabc",
		"machine api.example.com login bob password hunter22":                                "hunter22",
		"machine api.example.com\n  login bob\n  password hunter22\n":                        "hunter22",
		"machine h password hunter22 login bob":                                              "hunter22",
		"default password hunter22":                                                          "hunter22",
		"db.example.com:5432:prod:bob:hunter22pass\n":                                        "hunter22pass",
		"# mine\n*:*:*:postgres:hunter22pass":                                                "hunter22pass",
		`{"auths":{"https://index.docker.io/v1/":{"auth":"Ym9iOmh1bnRlcjIy"}}}`:              "Ym9iOmh1bnRlcjIy",
		"    client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQo=":                  "UFJJVkFURS",
		"//registry.npmjs.org/:_authToken=k9Jx2mQ7vR4tYb8L":                                  "k9Jx2mQ7vR4tYb8L",
		"curl -s -u bob:hunter22 https://x.example":                                          "hunter22",
		"curl --user 'bob:hunter22' x":                                                       "hunter22",
		"curl --user=bob:hunter22 x":                                                         "hunter22",
		"curl -ubob:hunter22 x":                                                              "hunter22",
		"mysql -uroot -phunter22 db":                                                         "hunter22",
		"sshpass -p hunter22 ssh h":                                                          "hunter22",
		"docker login -u bob -p hunter22 reg":                                                "hunter22",
		"https://hooks.slack.com/" + "services/T00000000/B00000000/abcdefghijklmnopqrstuvwx": "abcdefghijklmnopqrstuvwx",
		"https://discord.com/api/webhooks/123456789012345678/abcDEF123456789_abcDEF":         "abcDEF123456789_abcDEF",
		"https://api.telegram.org/bot123456789:AAEabcdefghijklmnopqrstuvwxyz/sendMe":         "AAEabcdefghijklmnopqrstuvwxyz",
		"https://b.example/x?sig=abc123def456ghi789jkl012mno345&se=2026":                     "abc123def456ghi789jkl012mno345",
		"https://b.example/x?a=b&X-Amz-Signature=abcdef0123456789abcdef0123456789":           "abcdef0123456789abcdef0123456789",
		"github_pat_" + "11ABCDEFG0abcdefghijkl_k9Jx2mQ7vR4tYb8LwZ1nCd5HsGf3PaEu":            "k9Jx2mQ7vR4tYb8LwZ1nCd5HsGf3PaEu",
		"pypi-" + "AgEIcHlwaS5vcmcCJGFiY2RlZmdoLTEyMzQtNTY3OC05MGFiLWNkZWYxMjM0NTY3OA":       "CJGFiY2RlZmdoLTEyMzQ",
	} {
		got := String(text)
		if strings.Contains(got, secret) || !strings.Contains(got, maskedPrefix) {
			t.Errorf("String(%q) = %q, want %q masked", text, got, secret)
		}
	}
}

// TestMaskLeaves: what is not a secret is left alone, so that models can still work with it.
func TestMaskLeaves(t *testing.T) {
	for _, text := range []string{
		"CHECKSUM=k9Jx2mQ7vR4tYb8LwZ1nCd5HsGf3PaEu", "\"integrity\": \"sha512-k9Jx2mQ7vR4tYb8LwZ1nCd5HsGf3PaEuk9Jx2mQ7vR4tYb8LwZ1nCd5HsGf3PaEu==\"", "GOROOT=/usr/local/go1/Some/Folder/With/Many/Names/X9", "COMMIT=3f786850e387550fdab836ed7e6dc881de23001b", "X-Request-Id: k9Jx2mQ7vR4tYb8LwZ1nCd5HsGf3PaEu", "ETag: k9Jx2mQ7vR4tYb8LwZ1nCd5HsGf3PaEu", "value = k9Jx2mQ7vR4tYb8LwZ1nCd5HsGf3PaEu", "URL=https://example.com/aB3/dE5/fG7/hI9/jK1", "LS_COLORS=rs=0:di=01;34:ln=01;36:mh=00:pi=40;33:so=01;35:do=01;35:bd=40;33", "BUILD_ID=20261120-1200-abcdef",
		"read -rsp 'Password: ' p; echo got ${#p}", "read -s -p \"Enter your password: \" PASS && login", "read -sp 'Token:' t; curl x",
		`{"password": "string", "token": "null", "secret": "changeme"}`,
		"", "hello", "password", "password: required", "the password is wrong", "token: string", "func token(s string)", "PASSWORD=$DB_PASS", "password=${X}", "token = getToken(x)", "TOKEN=$(cat x)", "password=", "--password", "PWD=/home/u", "OLDPWD=/x", "max_tokens: 4096", "tokens=128000", "token_count=12", "keyboard=us", "monkey: banana", "public_key=abc",
		"https://example.com/a:b@c", "http://localhost:8080/x", "git@github.com:a/b.git", "sk-short", "task-list-of-things-to-do-in-the-kitchen-today", "risk-free", "eyJ", "xoxo", "SSH_AUTH_SOCK=/tmp/x", "PASSWORD_FILE=/run/x", "password == other", "if password != x {", "-----BEGIN CERTIFICATE-----\nMIIabc\n-----END CERTIFICATE-----",
		"commit 3f786850e387550fdab836ed7e6dc881de23001b", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "id: 018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f", "<input type=\"password\" name=\"password\">", "secret: true", "auth: none", "author: me", "AKIASHORT",
		"github.com/x/y v1.2.3/go.mod h1:k9Jx2mQ7vR4tYb8LwZ1nCd5HsGf3PaEuk9Jx2mQ7vR4=", "\"resolved\": \"https://registry.npmjs.org/x/-/x-1.0.0.tgz#3f786850e387550fdab836ed7e6dc881de23001b\"",
		"checksum = \"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"", "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGk9Jx2mQ7vR4tYb8LwZ1nCd5HsGf3PaEu bob@h",
		"    client-certificate-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==", "ssh -p 2222 h", "cp -p a b", "mkdir -p src/long/path", "curl -u bob x", "curl -p -u $USER:$PASS x", "docker run -u 1000:1000 x", "docker run -p 8080:80 x", "rsync -u a:bcdef c", "mysql -p db", "login bob password", "the password is long", "machine learning password reset",
		"http://h:8080/a:b", "12:30:45:67:89", "main.go:12:5: error: x", "a.go:1234:b.c:d:e f", "[::1]:5432:a:b:c", "https://x.example/?sig=short", "https://hooks.slack.com/docs", "[masked:github:ab12]",
	} {
		if got := String(text); got != text {
			t.Errorf("String(%q) = %q, want it unchanged", text, got)
		}
	}
}

// TestMaskStable: the same secret has the same placeholder, another one another.
func TestMaskStable(t *testing.T) {
	a, b := String("PASSWORD=hunter22!"), String("x PASSWORD=hunter22!")
	if !strings.HasSuffix(b, strings.TrimPrefix(a, "PASSWORD=")) {
		t.Errorf("got %q and %q, want the same placeholder", a, b)
	}
	if String("PASSWORD=hunter23!") == a {
		t.Errorf("two secrets share the placeholder %q", a)
	}
}

func TestMaskProperties(t *testing.T) {
	parts := []string{"password", "=", ":", " ", "\"", "'", "\n", "token", "://", "@", "user", "Authorization: Bearer ", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "é", "日本", "\xff", "$X", "[masked:", "abc123XYZ", "\\", "{", "(", "--", "AKIA", "eyJ", ".", "_", "-", "0123456789abcdef", "\x00", "\\\"", "Cookie: "}
	for _, s := range secretSamples {
		parts = append(parts, s, s[:len(s)/2])
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 24).Draw(t, "parts"), "")
		checkMask(t, text)
	})
}

func checkMask(t fataler, text string) {
	once := String(text)
	if twice := String(once); twice != once {
		t.Fatalf("String is not idempotent: %q becomes %q becomes %q", text, once, twice)
	}
	if utf8.ValidString(text) && !utf8.ValidString(once) {
		t.Fatalf("String(%q) = %q cuts a character", text, once)
	}
}

func FuzzMask(f *testing.F) {
	for _, s := range secretSamples {
		f.Add("x=" + s)
	}
	f.Add("password: \"a\\\"b\"\nAuthorization: Basic x==\npostgres://a:b@c")
	f.Fuzz(func(t *testing.T, text string) { checkMask(t, text) })
}

// TestKeepSecret: a value that is known to be a secret is hidden, whatever it looks like and wherever it stands.
func TestKeepSecret(t *testing.T) {
	key := "correct-horse-" + strings.ToLower(rand.Text()[:8]) // what is kept stays so, also where the test is run again
	longer := key + "-staple"
	if got := String("x " + key); got != "x "+key {
		t.Fatalf("hidden before it was known: %q", got)
	}
	Keep(key, longer, longer, "short", "  spaced-secret  ")
	for _, text := range []string{key, "a" + key + "b", "k=" + longer + " " + key, "spaced-secret\n"} {
		got := String(text)
		if strings.Contains(got, "horse") || strings.Contains(got, "spaced") || strings.Contains(got, "staple") || !strings.Contains(got, maskedPrefix) {
			t.Errorf("String(%q) = %q", text, got)
		}
		if String(got) != got {
			t.Errorf("%q: masked twice, it differs", text)
		}
	}
	if got := String("a short text"); got != "a short text" {
		t.Errorf("a short value hides words: %q", got)
	}
}

// TestMaskBoundedTime: what makes the masker look ahead, as much as a tool may return.
func TestMaskBoundedTime(t *testing.T) {
	for _, piece := range []string{"password=(", "-----BEGIN PRIVATE KEY-----!", "://", "://a:", "token: ", "eyJ.", "sk-a ", "a", "password", "Authorization: Bearer ", "\\\"", "_", "AKIA-", "x=\"", "password=\"", "key_", "A=", "x-y:", "a-", "eyJ-", "password:(", "token=${", "- "} {
		text := strings.Repeat(piece, 256<<10/len(piece))
		start := cpuTime(t)
		String(text)
		if d := cpuTime(t) - start; d > bound {
			t.Errorf("%q over 256 KiB: took %v, want at most %v", piece, d, bound)
		}
	}
}

// cpuTime returns the processor time that the process has used, which other work on the machine does not change.
func cpuTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

type fataler interface {
	Fatalf(format string, args ...any)
}

// bound is the processor time that the masking of a quarter of a megabyte may take, also with the race detector on.
const bound = 15 * time.Second
