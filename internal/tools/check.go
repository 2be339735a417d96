package tools

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirmq/weir/internal/config"
)

func configCheck(in IO) *cobra.Command {
	var (
		out       output
		overrides []string
		dataDir   string
		noEnv     bool
	)
	c := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check a broker's configuration file without starting it",
		Long: `Check a broker's configuration as weir serve would read it: the properties FILE
(- is stdin), the KAFKA_… variables of the environment, and --override. Nothing is
started and nothing is asked over the network.

JSON (-o json): {"ok","settings","findings":[{"severity","key","where","message"}]}

It exits 2 when the broker would not start.`,
		Args: WantArgs(0, 1, "one file"),
		RunE: func(c *cobra.Command, args []string) error {
			src := config.Source{Overrides: overrides, DataDir: dataDir}
			if !noEnv {
				src.Env = in.Env
			}
			src.Hostname, _ = os.Hostname()
			if len(args) == 1 {
				var err error
				if src.FileName, src.File, err = readFile(in, args[0]); err != nil {
					return err
				}
			}
			r := config.Check(src)
			if out.json {
				type finding struct {
					Severity string `json:"severity"`
					Key      string `json:"key"`
					Where    string `json:"where"`
					Message  string `json:"message"`
				}
				fs := []finding{}
				for _, f := range r.Findings {
					fs = append(fs, finding{f.Severity.String(), f.Key, f.Where, f.Message})
				}
				if err := writeJSON(in.Stdout, map[string]any{"ok": r.OK(), "settings": r.Settings, "findings": fs}); err != nil {
					return err
				}
			} else if _, err := io.WriteString(in.Stdout, ended(r.String())); err != nil {
				return err
			}
			if !r.OK() {
				return &Failure{Code: ExitUsage}
			}
			return nil
		},
	}
	f := c.Flags()
	f.StringArrayVar(&overrides, "override", nil, "key=value that wins over file and environment, repeated")
	f.StringVar(&dataDir, "data-dir", "", "what log.dirs is when it is not set")
	f.BoolVar(&noEnv, "no-env", false, "leave the environment out")
	out.flag(c)
	return c
}

func readFile(in IO, name string) (string, []byte, error) {
	if name == "-" {
		b, err := io.ReadAll(io.LimitReader(in.Stdin, 16<<20))
		if err != nil {
			return "", nil, usagef("cannot read stdin: %w", err)
		}
		return "stdin", b, nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return "", nil, usagef("cannot read the configuration: %w", err)
	}
	if b == nil {
		b = []byte{}
	}
	return name, b, nil
}

func ended(s string) string {
	if s != "" && s[len(s)-1] != '\n' {
		s += "\n"
	}
	return s
}

type keyView struct {
	Name         string   `json:"name"`
	Of           string   `json:"of"` // broker or topic
	Type         string   `json:"type"`
	Default      *string  `json:"default"`
	Allowed      string   `json:"allowed"`
	Unit         string   `json:"unit"`
	Importance   string   `json:"importance"`
	Scope        string   `json:"scope"`
	Status       string   `json:"status"`
	Why          string   `json:"why,omitempty"`
	Doc          string   `json:"doc"`
	Synonyms     []string `json:"synonyms"`
	KafkaDefault string   `json:"kafka_default,omitempty"`
	Because      string   `json:"differs_because,omitempty"`
}

func configExplain(in IO) *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:   "explain [KEY]",
		Short: "Explain a configuration key, or list all",
		Long: `Explain a configuration key of a broker or a topic: what it does, its default and
range, and whether it has an effect in Weir. Without a key: all keys, a line each.

JSON (-o json): {"keys":[{"name","of","type","default","allowed","unit","importance",
"scope","status","why","doc","synonyms","kafka_default","differs_because"}]}`,
		Args: WantArgs(0, 1, "one key"),
		RunE: func(c *cobra.Command, args []string) error {
			name := ""
			if len(args) == 1 {
				name = args[0]
			}
			broker, why, known := config.Known(name)
			topic, isTopic := config.LookupTopic(name)
			if name != "" && !known {
				return usagef("%s", strings.Join(strings.Fields(config.Explain(name)), " "))
			}
			if !out.json {
				_, err := io.WriteString(in.Stdout, ended(config.Explain(name)))
				return err
			}
			var keys []*config.Key
			switch {
			case name == "":
				keys = append(config.BrokerKeys(), config.TopicKeys()...)
			case isTopic && broker != topic:
				keys = []*config.Key{broker, topic}
			case broker != nil:
				keys = []*config.Key{broker}
			}
			views := []keyView{}
			if known && broker == nil {
				views = append(views, keyView{Name: name, Of: "broker", Status: config.NoEffect.String(), Why: why, Synonyms: []string{}})
			}
			for _, k := range keys {
				v := keyView{
					Name: k.Name, Of: "broker", Type: fmt.Sprint(k.Type), Allowed: k.Allowed, Unit: k.Unit,
					Importance: fmt.Sprint(k.Importance), Scope: fmt.Sprint(k.Scope), Status: fmt.Sprint(k.Status), Why: k.Why,
					Doc: k.Doc, Synonyms: k.Synonyms, KafkaDefault: k.KafkaDefault, Because: k.DiffersBecause,
				}
				if k.Topic {
					v.Of = "topic"
				} else if name != "" {
					v.Name = name // with listener.name.x. before it
				}
				if !k.Null {
					v.Default = &k.Default
				}
				if v.Synonyms == nil {
					v.Synonyms = []string{}
				}
				views = append(views, v)
			}
			return writeJSON(in.Stdout, map[string]any{"keys": views})
		},
	}
	out.flag(c)
	return c
}
