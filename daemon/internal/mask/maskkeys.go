package mask

import "strings"

// maxKey is the longest part of a key that is looked at to find out whether it is one, in bytes. What is one is masked
// to its end.
const maxKey = 2048

// knownToken finds the end of a key that is known by its beginning.
func (m *masker) knownToken(i int) (end int, kind string) {
	s := m.in
	for n := range m.tokens[s[i]].kinds {
		k := &m.tokens[s[i]].kinds[n]
		if !strings.HasPrefix(s[i:], k.prefix) {
			continue
		}
		if k.kind == "jwt" {
			if end := m.webToken(i); end > i {
				return end, k.kind
			}
			continue
		}
		from := i + len(k.prefix)
		j := from
		for j < len(s) && j-from < k.more && (keyByte(s[j]) || s[j] == '.' && dotted(k.kind)) {
			j++
		}
		if j-from < k.more {
			continue
		}
		switch k.kind {
		case "aws":
			if j < len(s) && keyByte(s[j]) || strings.ToUpper(s[from:j]) != s[from:j] {
				continue
			}
		case "openai", "mailgun", "notion", "pulumi", "xai":
			if entropy(s[from:j]) < 3.2 {
				continue
			}
		}
		for j < len(s) && (keyByte(s[j]) || s[j] == '.' && dotted(k.kind)) {
			j++
		}
		for s[j-1] == '.' {
			j--
		}
		return j, k.kind
	}
	return i, ""
}

// webToken finds the end of a JSON web token: a short head, a body and a signature, with dots between them.
func (m *masker) webToken(i int) int {
	s := m.in
	head := min(m.keys.endAt(s, i, keyedByte), i+maxKey)
	if head-i < 10 || head >= len(s) || s[head] != '.' {
		return i
	}
	body := min(m.body.endAt(s, head+1, keyedByte), head+1+8*maxKey)
	if body-head < 4 || body >= len(s) || s[body] != '.' {
		return i
	}
	end := keyRun(s, body+1)
	for end < len(s)-1 && s[end] == '.' && keyByte(s[end+1]) { // five parts when it is encrypted
		end = keyRun(s, end+1)
	}
	return end
}

// keyRun is the end of the key characters from i on.
func keyRun(s string, i int) int {
	for i < len(s) && keyByte(s[i]) {
		i++
	}
	return i
}

func dotted(kind string) bool {
	switch kind {
	case "jwt", "google", "sendgrid", "vault", "doppler":
		return true
	}
	return false
}

// pemBlock finds the end of a private key that begins at i; a block that is cut off ends with the text, bounded.
func (m *masker) pemBlock(i int) int {
	s := m.in
	head := s[i:min(len(s), i+80)]
	nl := strings.Index(head[11:], "-----")
	if nl < 0 || !strings.Contains(head[:11+nl], "PRIVATE KEY") {
		return i
	}
	from := i + 11 + nl
	rest := s[from:]
	const maxPEM = 64 << 10
	rest = rest[:min(len(rest), maxPEM)]
	const mark = "-----END "
	if m.pem < from {
		m.pem = len(s)
		if end := strings.Index(s[from:], mark); end >= 0 {
			m.pem = from + end
		}
	}
	if end := m.pem - from; end+len(mark) <= len(rest) {
		tail := rest[end+len(mark):]
		if stop := strings.Index(tail[:min(len(tail), 64)], "-----"); stop >= 0 {
			return from + end + len(mark) + stop + 5
		}
	}
	// Cut off: base64 lines as far as they go.
	j := 5
	for j < len(rest) && (keyByte(rest[j]) || strings.IndexByte("+/=\r\n\\ ", rest[j]) >= 0) {
		j++
	}
	return from + j
}
