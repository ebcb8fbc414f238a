package lender

import "testing"

func TestSecret(t *testing.T) {
	tests := []struct {
		name, value string
		want        bool
	}{
		{"ANTHROPIC_API_KEY", "x", true},
		{"GITHUB_TOKEN", "x", true},
		{"aws_secret_access_key", "x", true},
		{"PGPASSWORD", "x", true},
		{"MYSQL_PWD", "x", true},
		{"NPM_CONFIG__AUTH", "x", true},
		{"MYTOKEN", "x", true},
		{"DATABASE_URL", "postgres://db/x", true},
		{"UPSTREAM", "https://app:hush@host/x", true},
		{"UPSTREAM", "https://host/x", false},
		{"MAILGUN_KEY", "x", true},
		{"SSH_PUBLIC_KEY", "x", false},
		{"MAILGUN_KEY_2", "x", true},
		{"DB_PASS_PROD", "x", true},
		{"SSHPASS", "x", true},
		{"PATH", "/usr/bin", false},
		{"PWD", "/home/u", false},
		{"OLDPWD", "/home/u", false},
		{"HOME", "/home/u", false},
		{"SSH_AUTH_SOCK", "/tmp/agent", false},
		{"KEYBOARD", "us", false},
		{"MONKEY", "x", false},
		{"EDITOR", "vim", false},
	}
	for _, tt := range tests {
		if got := Secret(tt.name, tt.value); got != tt.want {
			t.Errorf("Secret(%q, %q): got %v, want %v", tt.name, tt.value, got, tt.want)
		}
	}
}
