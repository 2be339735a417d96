package config

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// Explain is the text of `weir config explain KEY`: everything known about a key,
// as a broker's and as a topic's key when it is both. An empty name lists all
// keys, a line each. A name nothing knows gets a sentence that says so and names
// the nearest key; Lookup tells whether there is one.
func Explain(name string) string {
	var b strings.Builder
	if name == "" {
		explainAll(&b)
		return b.String()
	}
	broker, prefix, ok := resolve(name)
	topic := topicIndex[name]
	switch {
	case ok && broker == nil:
		fmt.Fprintf(&b, "%s has no effect: %s.\n", name, prefix)
	case broker != nil:
		explainKey(&b, broker, prefix)
	}
	if topic != nil {
		if broker != nil {
			b.WriteByte('\n')
		}
		explainKey(&b, topic, "")
	}
	if !ok && topic == nil {
		if why, old := legacy(name); old {
			fmt.Fprintf(&b, "%s has no effect: %s.\n", name, why)
		} else {
			fmt.Fprintf(&b, "%s is no key of Kafka 4.4 or Weir.\n", name)
			if near := Nearest(name); near != "" {
				fmt.Fprintf(&b, "The nearest is %s.\n", near)
			}
		}
	}
	return b.String()
}

// Known says whether Explain has more to tell about a name than that nothing
// knows it: its key, also behind "listener.name.x.", or, with a nil key, why it
// has no effect.
func Known(name string) (k *Key, why string, ok bool) {
	if k, prefix, ok := resolve(name); k != nil {
		return k, "", true
	} else if ok {
		return nil, prefix, true
	}
	if k := topicIndex[name]; k != nil {
		return k, "", true
	}
	why, ok = legacy(name)
	return nil, why, ok
}

func explainKey(b *strings.Builder, k *Key, prefix string) {
	kind := "broker"
	if k.Topic {
		kind = "topic"
	}
	fmt.Fprintf(b, "%s%s (%s key)\n    %s\n\n", prefix, k.Name, kind, k.Doc)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(b, "    %-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	if k.Unit != "" {
		row("type", "%s, %s", k.Type, k.Unit)
	} else {
		row("type", "%s", k.Type)
	}
	row("default", "%s", k.DefaultText())
	if k.KafkaDefault != "" {
		row("in Kafka", "%s; here %s because %s", k.KafkaDefault, k.DefaultText(), k.DiffersBecause)
	}
	if a := k.AllowedText(); a != "" {
		row("allowed", "%s", a)
	}
	row("importance", "%s", k.Importance)
	row("change", "%s", k.changeText())
	if k.Status == Effective {
		row("in Weir", "effective")
	} else {
		row("in Weir", "%s: %s", k.Status, k.Why)
	}
	if len(k.Synonyms) > 0 {
		row("when unset", "%s", strings.Join(k.Synonyms, ", then "))
	}
	if !k.Topic {
		if of := topicsBehind(k.Name); len(of) > 0 {
			row("default of", "topic key %s", strings.Join(of, ", "))
		}
		row("environment", "%s", EnvName(prefix+k.Name))
	}
}

// DefaultText is the default as people read it.
func (k *Key) DefaultText() string {
	switch {
	case k.Null:
		return "none"
	case k.Default == "":
		return "empty"
	}
	return k.Default
}

func (k *Key) changeText() string {
	return [...]string{
		ReadOnly:    "with a restart",
		PerBroker:   "while running, for one broker",
		ClusterWide: "while running, for one broker or for all",
		OnTopic:     "while running, for one topic",
	}[k.Scope]
}

// EnvName is the environment variable that sets a broker key.
func EnvName(key string) string {
	name, own := strings.CutPrefix(key, "weir.")
	name = strings.NewReplacer(".", "_", "_", "__", "-", "___").Replace(strings.ToUpper(name))
	if own {
		return "WEIR_" + name
	}
	return "KAFKA_" + name
}

// topicsBehind are the topic keys a broker key gives the default of.
func topicsBehind(name string) []string {
	var of []string
	for _, k := range topicKeys {
		if slices.Contains(k.Synonyms, name) {
			of = append(of, k.Name)
		}
	}
	return of
}

func explainAll(b *strings.Builder) {
	w := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	for _, k := range allKeys {
		name := k.Name
		if k.Topic {
			name += " (topic)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", name, k.DefaultText(), k.Status, k.Doc)
	}
	w.Flush() // into a strings.Builder, which does not fail
}

// Markdown is docs/config.md.
func Markdown() string {
	var b strings.Builder
	count := map[Status]int{}
	for _, k := range allKeys {
		count[k.Status]++
	}
	fmt.Fprintf(&b, `# Settings

<!-- Written by "go generate ./internal/config". Do not edit: the texts are in internal/config/keys_*.go. -->

Weir takes Kafka 4.4's own keys, in a .properties file (`+"`weir serve server.properties`"+`), as environment variables
(`+"`KAFKA_NUM_PARTITIONS=12`"+`: capitals, "_" for ".", "__" for "_", "___" for "-"; `+"`WEIR_`"+` for Weir's own) and as
`+"`--override key=value`"+`. An override beats the environment, that beats the file, that beats the default.
`+"`weir config check FILE`"+` says what is wrong or without effect in a file, `+"`weir config explain KEY`"+` what a key does.

Every key of Kafka 4.4 is accepted, checked and shown by DescribeConfigs. %d of the %d keys below are effective. The
others are marked: **no effect** for what has no meaning in Weir, **not yet** for what belongs to something Weir does
not do yet. Keys of ZooKeeper, of the JVM and of earlier versions are accepted too and said to have no effect; a key
that nothing knows gets a warning with the nearest known one.

"Change" says where a key may be set: at a start only (restart), while running for one broker (broker), or for one
broker or all of them (cluster). A key that a topic has too is the default of the topics that do not set it.
`, count[Effective], len(allKeys))
	b.WriteString("\n## Where the default is not Kafka's\n\n| key | here | Kafka | because |\n|---|---|---|---|\n")
	for _, k := range brokerKeys {
		if k.KafkaDefault != "" || k.DiffersBecause != "" {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", code(k.Name), code(k.Default), code(k.KafkaDefault), k.DiffersBecause)
		}
	}
	b.WriteString("\n## Keys of a topic\n")
	table(&b, topicKeys)
	for _, group := range brokerGroups {
		fmt.Fprintf(&b, "\n## %s\n", group.title)
		var keys []*Key
		for _, s := range group.specs {
			keys = append(keys, brokerIndex[s.name])
		}
		table(&b, keys)
	}
	return b.String()
}

func table(b *strings.Builder, keys []*Key) {
	scope := "change"
	if keys[0].Topic {
		scope = "default from"
	}
	fmt.Fprintf(b, "\n| key | what it does | type | default | allowed | importance | %s | in Weir |\n|---|---|---|---|---|---|---|---|\n", scope)
	for _, k := range keys {
		typ := k.Type.String()
		if k.Unit != "" {
			typ += ", " + k.Unit
		}
		change := [...]string{"restart", "broker", "cluster", ""}[k.Scope]
		if k.Topic {
			var from []string
			for _, s := range k.Synonyms {
				from = append(from, code(s))
			}
			change = strings.Join(from, ", ")
		}
		status := "effective"
		if k.Status != Effective {
			status = "**" + k.Status.String() + "**: " + k.Why
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", code(k.Name), k.Doc, typ, code(k.DefaultText()), code(k.Allowed), k.Importance, change, status)
	}
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(s, "|", `\|`) + "`"
}
