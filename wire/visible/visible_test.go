package visible

import (
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"plain text\n":            "plain text\n",
		"a\x1b[31mb":              "a␛[31mb",
		"\r\nend\rover":           "\nend␍over",
		"\x00\x07\x7f":            "␀␇␡",
		"tab\there":               "tab     here",
		"é\tb\n12345678\t\tx":     "é       b\n12345678                x",
		"a\u202eb":                "a⟨U+202E⟩b", // right-to-left override
		"a\u200bb\ufeff":          "a⟨U+200B⟩b⟨U+FEFF⟩",
		"\u009b2J":                "⟨U+009B⟩2J",
		"broken \xff":             "broken ⟨FF⟩",
		"👨\u200d👩\u200d👧 ❤\ufe0f": "👨\u200d👩\u200d👧 ❤\ufe0f",
		"ℹ\ufe0f ‼\ufe0f":         "ℹ\ufe0f ‼\ufe0f",
		"a\u200db":                "a⟨U+200D⟩b",
		"e\u0301 漢":               "e\u0301 漢",
		"un\u00a0deux":            "un\u00a0deux",
		"\U000e0041":              "⟨U+E0041⟩",
	} {
		if got := Text(in); got != want {
			t.Errorf("Text(%q): got %q, want %q", in, got, want)
		}
	}
	if got := Line("a\nb"); got != "a␤b" {
		t.Errorf("got %q", got)
	}
}

// What is approved character by character hides no blank and no carriage return either (P8).
func TestExact(t *testing.T) {
	for in, want := range map[string]string{
		"a\tb\n": "a\tb\n", "a\r\nb": "a␍\nb", "a\u00a0b": "a⟨U+00A0⟩b", "a\u2028b": "a⟨U+2028⟩b", "\u2800": "⟨U+2800⟩",
		"\u00ad": "⟨U+00AD⟩", "\ue000": "⟨U+E000⟩", "a\ufe0f": "a⟨U+FE0F⟩", "é日本": "é日本",
	} {
		if got := Exact(in); got != want {
			t.Errorf("Exact(%q): got %q, want %q", in, got, want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("a\x1b\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		out := Text(s)
		for _, r := range out {
			if (r < 0x20 && r != '\n') || (r >= 0x7f && r < 0xa0) || (r >= 0x202a && r <= 0x202e) || r == 0x200b {
				t.Fatalf("Text(%q) = %q holds %U", s, out, r)
			}
		}
		if again := Text(out); again != out {
			t.Fatalf("Text is not stable: %q, then %q", out, again)
		}
	})
}

// What was made visible stays as it is.
func TestExactIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		if once := Exact(s); Exact(once) != once || !utf8.ValidString(once) {
			t.Fatalf("Exact(%q) = %q is not visible", s, once)
		}
	})
}

// What is cut stays within its bytes, and ends between characters.
func TestCut(t *testing.T) {
	for _, c := range []struct {
		in        string
		most      int
		cut, clip string
	}{
		{"abc", 3, "abc", "abc"}, {"abcd", 3, "abc", "abc…"}, {"aé漢", 5, "aé", "aé…"}, {"漢字", 2, "", "…"}, {"\x80\x80", 1, "", "…"}, {"ab", -1, "", "…"},
	} {
		if cut, clip := Cut(c.in, c.most), Clip(c.in, c.most); cut != c.cut || clip != c.clip {
			t.Errorf("%q within %d: got %q and %q, want %q and %q", c.in, c.most, cut, clip, c.cut, c.clip)
		}
	}
	if got := FirstLine("\n\n one\x1b[2J\ntwo"); got != "one␛[2J" {
		t.Errorf("the first line is %q", got)
	}
}
