package metadata

import "fmt"

// maxTopicName leaves room for "-<partition>" in a folder name of 255 bytes.
const maxTopicName = 249

// The name of Kafka's own metadata log; nobody may create a topic of that name.
const metadataTopic = "__cluster_metadata"

// CheckTopicName says what is wrong with a topic's name, "" for nothing. The
// rules and the texts are Kafka's: names become folders and metric names.
func CheckTopicName(name string) string {
	switch {
	case name == "":
		return "Topic name is invalid: the empty string is not allowed"
	case name == "." || name == "..":
		return "Topic name is invalid: '" + name + "' is not allowed"
	case len(name) > maxTopicName:
		return fmt.Sprintf("Topic name is invalid: the length of '%s' is longer than the max allowed length %d", name, maxTopicName)
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-' {
			continue
		}
		return "Topic name is invalid: '" + name + "' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
	}
	return ""
}
