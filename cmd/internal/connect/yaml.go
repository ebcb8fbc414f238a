package connect

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// yamlFile changes a YAML file whose objects stand one key to a line, as goose writes it.
var yamlFile = syntax{
	parse: yaml.Unmarshal,
	set: func(l lines, path []string, value string) (lines, error) {
		parents, err := l.keys(path)
		if err != nil {
			return nil, err
		}
		if len(parents) == len(path) {
			k := parents[len(path)-1]
			return slices.Replace(l, k.from, k.to, indented(k.indent, path[len(path)-1]+": "+value)), nil
		}
		to, indent, step := len(l), 0, 2 // at the end of the file, or of the object
		if n := len(parents); n > 0 {
			to, indent, step = parents[n-1].to, parents[n-1].within, parents[n-1].within-parents[n-1].indent
		}
		for _, name := range path[len(parents) : len(path)-1] {
			l = slices.Insert(l, to, indented(indent, name+":"))
			to, indent = to+1, indent+step
		}
		return slices.Insert(l, to, indented(indent, path[len(path)-1]+": "+value)), nil
	},
	remove: func(l lines, path []string) (lines, error) {
		keys, err := l.keys(path)
		if err != nil || len(keys) < len(path) {
			return l, err
		}
		k := keys[len(keys)-1]
		for i := len(keys) - 2; i >= 0 && keys[i].members == 1; i-- { // also remove objects that only contained it
			k = keys[i]
		}
		return slices.Delete(l, k.from, k.to), nil
	},
}

func indented(columns int, line string) string { return strings.Repeat(" ", columns) + line }

// yamlKey is where a key and its value stand.
type yamlKey struct {
	from, to int // its lines, without the comments above the next key
	indent   int // columns before it
	within   int // columns before the keys of its value
	members  int // how many keys its value has
}

// keys finds as many keys of a path as there are, from the outermost one.
func (l lines) keys(path []string) (keys []yamlKey, err error) {
	var file yaml.Node
	if err := yaml.Unmarshal(l.text(), &file); err != nil {
		return nil, err
	}
	if len(file.Content) == 0 {
		return nil, nil
	}
	object, end := file.Content[0], len(l)
	for _, name := range path {
		if object.Kind != yaml.MappingNode {
			break
		}
		i := 0
		for i < len(object.Content) && object.Content[i].Value != name {
			i += 2
		}
		if i == len(object.Content) {
			break
		}
		key, value := object.Content[i], object.Content[i+1]
		if object.Style&yaml.FlowStyle != 0 {
			return nil, errByHand
		}
		if i+2 < len(object.Content) {
			end = object.Content[i+2].Line - 1
		}
		for end > key.Line && (blank(l[end-1]) || comment(l[end-1])) {
			end--
		}
		k := yamlKey{from: key.Line - 1, to: end, indent: key.Column - 1, within: key.Column + 1, members: len(value.Content) / 2}
		if len(value.Content) > 0 && value.Kind == yaml.MappingNode {
			k.within = value.Content[0].Column - 1
		}
		keys = append(keys, k)
		object = value
	}
	return keys, nil
}
