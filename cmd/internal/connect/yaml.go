package connect

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"go.yaml.in/yaml/v4"
)

// yamlFile is a settings file in YAML. It is written with the indentation and without the blank lines, as goose itself writes it.
type yamlFile struct{ file yaml.Node }

func parseYAML(text []byte) (document, error) {
	f := &yamlFile{}
	in := yaml.NewDecoder(bytes.NewReader(text))
	switch err := in.Decode(&f.file); {
	case errors.Is(err, io.EOF): // a file that is empty or only has comments
		f.file = yaml.Node{Kind: yaml.DocumentNode, HeadComment: string(bytes.TrimSpace(text)), Content: []*yaml.Node{{Kind: yaml.MappingNode}}}
	case err != nil:
		return nil, err
	case !errors.Is(in.Decode(new(yaml.Node)), io.EOF): // several documents
		return nil, errByHand
	}
	return f, nil
}

// find returns the object that has the setting at a path, and the index of the setting's name in its Content; the value follows the name.
// object is nil if there is no such setting or, with create, if it cannot be made.
func (f *yamlFile) find(path []string, create bool) (object *yaml.Node, i int) {
	object = f.file.Content[0]
	for n, name := range path {
		if create && object.Tag == "!!null" { // "extensions:" without anything below it
			object.Kind, object.Tag, object.Value = yaml.MappingNode, "", ""
		}
		if object.Kind != yaml.MappingNode {
			return nil, -1
		}
		for i = 0; i < len(object.Content) && object.Content[i].Value != name; {
			i += 2
		}
		switch missing := i == len(object.Content); {
		case missing && !create:
			return nil, -1
		case missing:
			object.Content = append(object.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, &yaml.Node{Kind: yaml.MappingNode})
		}
		if n < len(path)-1 {
			object = object.Content[i+1]
		}
	}
	return object, i
}

func (f *yamlFile) get(path []string) (value any) {
	object, i := f.find(path, false)
	if object == nil || object.Content[i+1].Decode(&value) != nil {
		return nil
	}
	return value
}

func (f *yamlFile) set(path []string, value any) error {
	object, i := f.find(path, true)
	if object == nil {
		return errByHand
	}
	v := object.Content[i+1]
	was := *v
	err := v.Encode(value)
	v.HeadComment, v.LineComment, v.FootComment = was.HeadComment, was.LineComment, was.FootComment
	return err
}

func (f *yamlFile) remove(path []string) error {
	if object, i := f.find(path, false); object != nil {
		object.Content = slices.Delete(object.Content, i, i+2)
	}
	return nil
}

func (f *yamlFile) text() ([]byte, error) {
	var b bytes.Buffer
	out := yaml.NewEncoder(&b)
	out.SetIndent(2)
	out.CompactSeqIndent()
	err := errors.Join(out.Encode(&f.file), out.Close())
	return b.Bytes(), err
}
