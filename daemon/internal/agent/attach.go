package agent

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"sublet/compaction"
	"sublet/daemon/internal/mask"
	"sublet/daemon/internal/picture"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/risk/secret"
	"sublet/daemon/internal/tool"
)

const (
	maxAttachment = 64 << 10  // bytes of one attached text file
	maxAttached   = 192 << 10 // of all
	maxNamed      = 20        // attachments that are not shown and named to the user
)

// attachments reads the files that go with the prompt. It returns the images for the model, after their names, and texts: those of the
// files and a line about each file that the model does not see, with the reason. The user gets a notice about those files.
func (r *runner) attachments() (images []provider.Part, texts []string) {
	add := func(text string) { texts = append(texts, mask.String(strings.TrimSpace(text))) }
	var unseen []string
	bytesLeft, imagesLeft, pixelsLeft := maxAttached, picture.MaxMany, picture.MaxRequest
	for _, a := range r.t.Attachments {
		path := string(a.Path)
		if !filepath.IsAbs(path) {
			path = filepath.Join(r.environment().Cwd, path)
		}
		name := mask.String(clean(path))
		text, image, err := readAttached(path, name, r.env.Secrets)
		switch {
		case err != nil:
		case image == nil && len(text) > bytesLeft:
			err = errTooMuch
		case image == nil:
			bytesLeft -= len(text)
			r.env.Files.Saw(r.env.Agent, path, tool.Digest([]byte(text)))
			add(fmt.Sprintf("Attached file %s:\n%s", name, text))
			continue
		case r.withoutImages():
			err = errNoImages
		case imagesLeft == 0:
			err = fmt.Errorf("more than %d images", picture.MaxMany)
		case image.Size > pixelsLeft:
			err = errTooMuch
		default:
			imagesLeft, pixelsLeft = imagesLeft-1, pixelsLeft-image.Size
			images = append(images, imageParts(image)...)
			continue
		}
		add(fmt.Sprintf("Attached, not shown: %s (%v)", name, err))
		unseen = append(unseen, fmt.Sprintf("%s (%v)", name, err))
	}
	if more := len(unseen) - maxNamed; more > 0 {
		unseen = append(unseen[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	if len(unseen) > 0 {
		r.notice("Attached, but not shown to the model: " + strings.Join(unseen, ", "))
	}
	return images, texts
}

// imageParts returns an image for the model, after its name, since there may be several.
func imageParts(i *picture.Image) []provider.Part {
	return []provider.Part{{Text: "Attached image " + i.String() + ":"}, {Image: i}}
}

// readAttached reads an attachment: a text or an image, decided by the content. It opens the file once, without blocking on
// a pipe, and reads it up to its bound.
func readAttached(path, name string, secrets secret.Table) (text string, _ *picture.Image, _ error) {
	f, info, err := tool.OpenRegular(path)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return "", nil, err
	}
	if head = head[:n]; picture.Is(head) {
		// Masking does not work on pixels, so an image in a secret folder, or reached by a link there, is not shown.
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return "", nil, err
		}
		if secrets.Holds(real) {
			return "", nil, errSecretPlace
		}
		image, err := picture.Read(name, io.MultiReader(strings.NewReader(string(head)), f))
		return "", image, err
	}
	if info.Size() > maxAttachment {
		return "", nil, errTooLong
	}
	rest, err := io.ReadAll(io.LimitReader(f, maxAttachment+1))
	if text = string(head) + string(rest); err == nil && len(text) > maxAttachment {
		err = errTooLong
	}
	if err == nil && (!utf8.ValidString(text) || !strings.HasPrefix(http.DetectContentType(head), "text/")) {
		err = errNotText
	}
	return text, nil, err
}

// Images stores the images that a model saw, by event. The hub implements it and logs errors; a later turn then has a note
// in place of the image.
type Images interface {
	// Keep stores images of the event of that number.
	Keep(seq int64, images []*picture.Image)
	// Forget removes the pixels of an event's images, after a provider refused them.
	Forget(seq int64)
}

// keepImages stores the images of an event.
func (r *runner) keepImages(seq int64, images []*picture.Image) {
	if r.t.Images != nil && seq > 0 && len(images) > 0 {
		r.t.Images.Keep(seq, images)
	}
}

// withoutImages reports whether the model takes no images.
func (r *runner) withoutImages() bool {
	return r.noImages || r.t.Model != nil && r.t.Model.Info().NoImages
}

// refusedImages handles an error of the model about images: it removes images from the conversation and returns true if the
// request should be sent again. Otherwise an image that a provider refuses would end every later turn too. No tool has run
// since the request.
func (r *runner) refusedImages(pe *provider.Error) (again bool) {
	if len(imagesOf(r.entries)) == 0 {
		return false
	}
	switch {
	case pe.Kind == provider.ErrImages && !r.noImages:
		r.noImages = true // request leaves them out from now on
		r.notice("This model takes no images; it gets only their names.")
		return true
	case pe.AboutImage() && !r.noImages:
	default:
		return false
	}
	// The error may not name the image: remove first those of this turn, then all.
	from := 0
	for i, e := range r.entries {
		if e.first > 0 && e.first == r.t.StartSeq {
			from = i
		}
	}
	if len(imagesOf(r.entries[from:])) == 0 {
		from = 0
	}
	var names []string
	for i := from; i < len(r.entries); i++ {
		for _, image := range imagesOf(r.entries[i : i+1]) {
			names = append(names, image.Name)
		}
		if e := &r.entries[i]; len(imagesOf(r.entries[i:i+1])) > 0 {
			if r.t.Images != nil {
				for _, seq := range e.imageSeqs() {
					r.t.Images.Forget(seq)
				}
			}
			*e = e.noted("the provider refused it")
		}
	}
	r.notice(clip("Taken out, because the provider refused it: "+strings.Join(names, ", ")+". It said: "+clean(pe.Message), 500))
	return true
}

// imagesOf returns the images in entries that still have pixels.
func imagesOf(entries []entry) (list []*picture.Image) {
	for _, e := range entries {
		list = append(list, provider.Images([]provider.Message{e.msg})...)
	}
	return list
}

// imageSeqs returns the numbers of the events to which images of the entry may belong.
func (e entry) imageSeqs() []int64 {
	if e.kind == compaction.Request {
		return []int64{e.first}
	}
	var seqs []int64
	for _, f := range e.facts {
		seqs = append(seqs, f.seq)
	}
	return seqs
}

// noted returns the entry with a note in place of each image.
func (e entry) noted(why string) entry {
	e.msg.Parts = notedParts(e.msg.Parts, func(*picture.Image) string { return why })
	return e
}

// notedParts returns a copy of parts with a note in place of each image for which why returns a reason.
func notedParts(parts []provider.Part, why func(*picture.Image) string) []provider.Part {
	out := make([]provider.Part, 0, len(parts))
	for _, p := range parts {
		switch {
		case p.Image != nil:
			if reason := why(p.Image); reason != "" {
				p = provider.Part{Text: note(p.Image, reason)}
			}
		case p.ToolResult != nil && len(p.ToolResult.Images) > 0:
			tr := *p.ToolResult
			tr.Images = nil
			for _, i := range p.ToolResult.Images {
				if reason := why(i); reason != "" {
					tr.Content += "\n" + note(i, reason)
				} else {
					tr.Images = append(tr.Images, i)
				}
			}
			p.ToolResult = &tr
		}
		out = append(out, p)
	}
	return out
}

func note(i *picture.Image, why string) string {
	return "[" + i.String() + " is not shown: " + why + "]"
}

// shownImages limits the images of a request to the newest, as many and as large as every provider takes, and none for a model
// without images. It replaces the others by their names.
func (r *runner) shownImages(messages []provider.Message) []provider.Message {
	none := r.withoutImages()
	count, size := 0, 0
	for i := len(messages) - 1; i >= 0; i-- {
		m := &messages[i]
		over := map[*picture.Image]string{}
		for _, p := range slices.Backward(m.Parts) {
			list := []*picture.Image{p.Image}
			if p.ToolResult != nil {
				list = p.ToolResult.Images
			}
			for _, image := range slices.Backward(list) {
				switch {
				case image == nil:
				case none:
					over[image] = "this model takes no images"
				case image.Data == nil:
					over[image] = "it is no longer kept"
				case count == picture.MaxMany || size+image.Size > picture.MaxRequest:
					over[image] = "newer images take the room"
				default:
					count, size = count+1, size+image.Size
				}
			}
		}
		if len(over) > 0 {
			m.Parts = notedParts(m.Parts, func(i *picture.Image) string { return over[i] })
		}
	}
	return messages
}

// WithImages returns a copy of the conversation with the images kept for each event, by its number.
func (c Conversation) WithImages(kept map[int64][]*picture.Image) Conversation {
	if len(kept) == 0 {
		return c
	}
	entries := slices.Clone(c.entries)
	for i := range entries {
		e := &entries[i]
		switch e.kind {
		case compaction.Request:
			var shown []provider.Part
			for _, image := range kept[e.first] {
				shown = append(shown, imageParts(image)...)
			}
			if len(shown) > 0 && len(e.msg.Parts) > 0 { // Parts[0] is the prompt, the rest its context
				e.msg.Parts = slices.Concat(e.msg.Parts[:1], shown, e.msg.Parts[1:])
			}
		case compaction.Results:
			parts := slices.Clone(e.msg.Parts)
			for j, p := range parts {
				if p.ToolResult == nil {
					continue
				}
				if images := kept[e.facts[p.ToolResult.CallID].seq]; len(images) > 0 {
					tr := *p.ToolResult
					tr.Images = images
					parts[j].ToolResult = &tr
				}
			}
			e.msg.Parts = parts
		}
	}
	c.entries = entries
	return c
}
