package mask

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strings"
)

func placeholder(kind, secret string) string {
	sum := sha256.Sum256([]byte("sublet mask " + secret))
	return maskedPrefix + kind + ":" + hex.EncodeToString(sum[:2]) + "]"
}

// tokenKind is a key that is known by how it begins.
type tokenKind struct {
	prefix string
	more   int // the least number of key characters that follow
	kind   string
}

var tokenKinds = []tokenKind{
	{"AKIA", 16, "aws"},
	{"ASIA", 16, "aws"},
	{"ABIA", 16, "aws"},
	{"ACCA", 16, "aws"},
	{"ghp_", 30, "github"},
	{"gho_", 30, "github"},
	{"ghu_", 30, "github"},
	{"ghs_", 30, "github"},
	{"ghr_", 30, "github"},
	{"github_pat_", 30, "github"},
	{"glpat-", 18, "gitlab"},
	{"gldt-", 18, "gitlab"},
	{"glrt-", 18, "gitlab"},
	{"glptt-", 18, "gitlab"},
	{"glcbt-", 18, "gitlab"},
	{"sk-ant-", 20, "anthropic"},
	{"sk-proj-", 20, "openai"},
	{"sk-svcacct-", 20, "openai"},
	{"sk-admin-", 20, "openai"},
	{"sk-or-", 20, "openrouter"},
	{"sk-", 32, "openai"},
	{"xoxb-", 16, "slack"},
	{"xoxp-", 16, "slack"},
	{"xoxa-", 16, "slack"},
	{"xoxr-", 16, "slack"},
	{"xoxs-", 16, "slack"},
	{"xoxe-", 16, "slack"},
	{"xoxe.", 16, "slack"},
	{"xapp-", 16, "slack"},
	{"sk_live_", 16, "stripe"},
	{"sk_test_", 16, "stripe"},
	{"rk_live_", 16, "stripe"},
	{"rk_test_", 16, "stripe"},
	{"whsec_", 24, "stripe"},
	{"AIza", 33, "google"},
	{"ya29.", 20, "google"},
	{"GOCSPX-", 20, "google"},
	{"npm_", 34, "npm"},
	{"pypi-", 50, "pypi"},
	{"SG.", 40, "sendgrid"},
	{"hf_", 30, "huggingface"},
	{"dop_v1_", 40, "digitalocean"},
	{"doo_v1_", 40, "digitalocean"},
	{"dor_v1_", 40, "digitalocean"},
	{"shpat_", 28, "shopify"},
	{"shpss_", 28, "shopify"},
	{"shpca_", 28, "shopify"},
	{"dckr_pat_", 20, "docker"},
	{"hvs.", 20, "vault"},
	{"hvb.", 20, "vault"},
	{"dp.pt.", 36, "doppler"},
	{"lin_api_", 30, "linear"},
	{"gsk_", 40, "groq"},
	{"tskey-", 16, "tailscale"},
	{"AGE-SECRET-KEY-1", 40, "age"},
	{"rubygems_", 40, "rubygems"},
	{"pul-", 36, "pulumi"},
	{"glc_", 30, "grafana"},
	{"glsa_", 30, "grafana"},
	{"nvapi-", 40, "nvidia"},
	{"r8_", 36, "replicate"},
	{"xai-", 40, "xai"},
	{"EAACEdEose0cBA", 10, "facebook"},
	{"sq0csp-", 40, "square"},
	{"sq0atp-", 20, "square"},
	{"key-", 32, "mailgun"},
	{"figd_", 36, "figma"},
	{"ntn_", 40, "notion"},
	{"secret_", 40, "notion"},
	{"fio-u-", 40, "frame"},
	{"sntrys_", 40, "sentry"},
	{"eyJ", 20, "jwt"},
}

// tokenStart has the known keys by their first byte, and which may be the second and the third: sets of their low six bits.
var tokenStart = func() (t [256]struct {
	second, third uint64
	kinds         []tokenKind
},
) {
	for _, k := range tokenKinds {
		of := &t[k.prefix[0]]
		of.second |= 1 << (k.prefix[1] & 63)
		of.third |= 1 << (k.prefix[2] & 63)
		of.kinds = append(of.kinds, k)
	}
	return t
}()

// mayBeToken rules out most words that are no known key.
func mayBeToken(s string, i int) bool {
	if i+2 >= len(s) {
		return false
	}
	of := &tokenStart[s[i]]
	return (of.second>>(s[i+1]&63))&(of.third>>(s[i+2]&63))&1 != 0
}

// secretReference tells that a value only names where the secret is: $X, ${X}, $(cmd), %X%, <x>, {{x}}, ***.
func secretReference(v string) bool {
	switch {
	case v == "":
		return true
	case v[0] == '$' && len(v) > 1 && (v[1] == '{' || v[1] == '(' || v[1] >= 'A' && v[1] <= 'Z' || v[1] >= 'a' && v[1] <= 'z' || v[1] == '_'):
		return true
	case v[0] == '%' || v[0] == '<' || strings.HasPrefix(v, "{{") || strings.HasPrefix(v, "[masked:"):
		return true
	}
	return strings.Trim(v, "*x.X•-") == ""
}

func wordOnly(v string) bool {
	for i := 0; i < len(v); i++ {
		if c := v[i]; (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return true
}

// notASecret has values of such names that mean something else.
func notASecret(v string) bool {
	switch strings.ToLower(v) {
	case "true", "false", "null", "none", "nil", "undefined", "required", "optional", "string", "example", "changeme", "placeholder", "password", "secret", "token", "redacted", "masked", "hidden", "env", "file", "prompt", "yes", "test":
		return true
	}
	return false
}

// entropy is in bits for each byte.
func entropy(s string) float64 {
	if s == "" {
		return 0
	}
	var n [256]int
	for i := 0; i < len(s); i++ {
		n[s[i]]++
	}
	e := 0.0
	for _, c := range n {
		if c > 0 {
			p := float64(c) / float64(len(s))
			e -= p * math.Log2(p)
		}
	}
	return e
}
