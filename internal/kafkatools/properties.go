package kafkatools

import (
	"os"
	"strconv"
	"strings"

	"github.com/weirmq/weir/internal/config"
)

// properties are a Java client's, by name. Unknown ones have no effect, as there.
type properties map[string]string

// readProperties loads a properties file; an empty path is none.
func readProperties(path string) (properties, error) {
	p := properties{}
	if path == "" {
		return p, nil
	}
	all, err := propertyPairs(path)
	if err != nil {
		return nil, err
	}
	for _, kv := range all {
		p[kv.key] = kv.value
	}
	return p, nil
}

// propertyPairs reads a properties file in its order; a later pair may repeat a key.
func propertyPairs(path string) (out []keyValue, err error) {
	body, err := os.ReadFile(path)
	if err != nil {
		return nil, noSuchFile(path, err)
	}
	all, err := config.ParseProperties(body)
	if err != nil {
		return nil, illegalArgument("%s: %v", path, err)
	}
	for _, p := range all {
		out = append(out, keyValue{p.Key, p.Value})
	}
	return out, nil
}

func noSuchFile(path string, err error) error {
	switch {
	case os.IsNotExist(err):
		return &javaError{class: "java.nio.file.NoSuchFileException", message: path}
	case os.IsPermission(err):
		return &javaError{class: "java.nio.file.AccessDeniedException", message: path}
	}
	return &javaError{class: "java.io.IOException", message: err.Error()}
}

// merge adds key=value arguments; a later one wins, and one without = is empty.
func (p properties) merge(args []string) {
	for _, a := range args {
		k, v, _ := strings.Cut(a, "=")
		p[k] = v
	}
}

// get is the value of key, or what it is by default.
func (p properties) get(key, def string) string {
	if v, ok := p[key]; ok {
		return strings.TrimSpace(v)
	}
	return def
}

// number is a property that is one, within its range.
func (p properties) number(key string, bits int, def, least int64) (int64, error) {
	v, ok := p[key]
	if !ok {
		return def, nil
	}
	n, err := strconv.ParseInt(strings.TrimSpace(v), 10, bits)
	if err != nil {
		kind := "LONG"
		if bits == 32 {
			kind = "INT"
		}
		return 0, configError("Invalid value %s for configuration %s: Not a number of type %s", v, key, kind)
	}
	if n < least {
		return 0, configError("Invalid value %d for configuration %s: Value must be at least %d", n, key, least)
	}
	return n, nil
}

// boolean is a property that is true or false.
func (p properties) boolean(key string, def bool) (bool, error) {
	v, ok := p[key]
	if !ok {
		return def, nil
	}
	switch strings.ToLower(strings.TrimSpace(v)) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, configError("Invalid value %s for configuration %s: Expected value to be either true or false", v, key)
}

// word is a property that is one of a few words.
func (p properties) word(key, def string, allowed ...string) (string, error) {
	v := p.get(key, def)
	for _, a := range allowed {
		if v == a {
			return v, nil
		}
	}
	return "", configError("Invalid value %s for configuration %s: String must be one of: %s", v, key, strings.Join(allowed, ", "))
}
