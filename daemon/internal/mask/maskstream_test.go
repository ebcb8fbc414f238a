package mask

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A secret that is cut anywhere, into two pieces or into its bytes, is masked all the same, and nothing else changes.
func TestStreamMasksWhatIsCut(t *testing.T) {
	texts := []string{
		"PASSWORD=hunter22!xyz and more", "curl -H 'Authorization: Bearer abc.def.ghi1' x", "see postgres://bob:s3cretpw@db/x there", "api_key = \"abcd1234efgh5678\"",
		"-----BEGIN RSA PRIVATE KEY-----\nMIIabcdef\nMIIabcdef\n-----END RSA PRIVATE KEY-----\nand on",
		`"cert\n-----BEGIN PRIVATE KEY-----\nMIIabcdeg\n-----END PRIVATE KEY-----"`,
		"machine h.example login bob password hunter22\n", "curl -u bob:hunter22pw x",
		// What was kept of the text before began at its only blank, behind the name.
		`{"id":"` + strings.Repeat("0123,", 60) + `","password": "hunter22"}`,
		// A token before a host, which has no known beginning, was passed on in pieces.
		"git clone https://k9Jx2mQ7vR4tYb8LwZ1nCd5H@github.com/a/b here",
	}
	secrets := []string{"hunter22!xyz", "abc.def.ghi1", "s3cretpw", "abcd1234efgh5678", "MIIabcdef", "MIIabcdeg", "hunter22", "hunter22pw", "hunter22", "k9Jx2mQ7vR4tYb8LwZ1nCd5H"}
	for _, s := range secretSamples {
		texts = append(texts, "the key is "+s+", keep it")
		secrets = append(secrets, s)
	}
	for i, text := range texts {
		maskedInPieces(t, text, secrets[i])
	}
}

// maskedInPieces passes a text with a secret through a Stream, byte by byte and cut once at each place, and compares with String.
func maskedInPieces(t *testing.T, text, secret string) {
	t.Helper()
	want := String(text)
	if strings.Contains(want, secret) {
		t.Fatalf("%q: the whole is not masked", text)
	}
	var bytes Stream
	got := ""
	for k := range len(text) {
		got += bytes.Add(text[k : k+1])
	}
	if got += bytes.Flush(); got != want {
		t.Errorf("byte by byte: got %q, want %q", got, want)
	}
	for k := range len(text) {
		var s Stream
		if got := s.Add(text[:k]) + s.Add(text[k:]) + s.Flush(); got != want {
			t.Errorf("cut at %d: got %q, want %q", k, got, want)
		}
	}
}

// Values that are known, and what was typed, were passed on as they came in pieces, since only keys of a known form were held back.
func TestStreamOfKnownValues(t *testing.T) {
	const typed, given = "n7!tr0ub4dorW", "correct-horse-battery"
	KeepTyped(typed)
	Keep(given)
	for _, secret := range []string{typed, typed[3:], given, base64.StdEncoding.EncodeToString([]byte(typed)), hex.EncodeToString([]byte(typed))} {
		maskedInPieces(t, "it is "+secret+", and no more", secret)
	}
}

// Prose is held back for a word at most, where that may become a name that means a secret ("to" of a token), and else not.
func TestStreamHoldsProseNot(t *testing.T) {
	known.typed, known.keys = nil, nil // an end of the text could begin one of those
	var s Stream
	late := 0
	for _, piece := range []string{"I", " will", " look", " at", " the", " files", " in", " src", ".", "\n\n", "Then", " run", " `go", " test", " ./...`", ",", " and", " commit", ":", " it", " is", " done", "."} {
		s.Add(piece)
		if s.held != "" {
			late++
		}
		if len(s.held) >= len(" commit") {
			t.Errorf("%q: held %q", piece, s.held)
		}
	}
	if late > 5 {
		t.Errorf("held something back after %d pieces", late)
	}
}

// Whatever the text and its pieces: where nothing was masked, nothing is lost, doubled or changed.
func TestStreamProperties(t *testing.T) {
	parts := []string{"password", "=", ": ", " ", "\n", "token", "://", "@", "user", "Authorization: Bearer ", "é", "$X", "abc", "a", "-----BEGIN PRIVATE KEY-----\n", "--", "sk-", "gh"}
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.SampledFrom(parts), 0, 8).Draw(t, "pieces")
		var s Stream
		got := ""
		for _, p := range pieces {
			got += s.Add(p)
		}
		got += s.Flush()
		if text := strings.Join(pieces, ""); !strings.Contains(got, maskedPrefix) && got != text {
			t.Fatalf("%q: got %q, want it unchanged", pieces, got)
		}
	})
}

func BenchmarkStream(b *testing.B) {
	pieces := strings.SplitAfter("I will look at the files in src and then run the tests of the package that changed. ", " ")
	for b.Loop() {
		var s Stream
		for _, p := range pieces {
			s.Add(p)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(pieces)), "ns/piece")
}
