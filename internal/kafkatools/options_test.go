package kafkatools

// Shows: flags are read as joptsimple reads them, wrong ones are told in its
// words, and the help stands in its columns. The expectations were seen from
// Kafka's own tools.

import (
	"fmt"
	"strings"
	"testing"
)

func testOptions(abbreviate bool) *options {
	o := &options{abbreviate: abbreviate}
	o.value("bootstrap-server", "String", "server to connect to", "REQUIRED: The brokers.")
	o.value("partitions", "Integer", "# of partitions", "How many.")
	o.value("state", "String", "", "Which.").optional()
	o.value("timeout", "Long", "ms", "How long.").withDefault("5000")
	o.flag("list", "List.")
	o.flag("describe", "Describe.")
	o.flag("delete", "Delete.")
	o.flag("v", "One letter.")
	o.value("n", "Integer", "", "A letter with a value.")
	return o
}

// shown is what was parsed, as text.
func shown(o *options) string {
	var parts []string
	for _, f := range o.all {
		if f.given {
			parts = append(parts, fmt.Sprintf("%s%q", f.names[0], f.values))
		}
	}
	return strings.Join(parts, " ") + fmt.Sprintf(" rest%q", o.rest)
}

func TestOptions(t *testing.T) {
	f := func(line, want string) {
		t.Helper()
		o := testOptions(true)
		got := ""
		if err := o.parse(strings.Fields(line)); err != nil {
			got = err.Error()
		} else {
			got = shown(o)
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", line, got, want)
		}
	}
	f("--list", `list[] rest[]`)
	f("-list", `list[] rest[]`)
	f("--li", `list[] rest[]`)
	f("--de", "de is not a recognized option")
	f("--desc --del", `describe[] delete[] rest[]`)
	f("--nosuch", "nosuch is not a recognized option")
	f("--bootstrap-server a:1 x", `bootstrap-server["a:1"] rest["x"]`)
	f("--bootstrap-server=a:1=b", `bootstrap-server["a:1=b"] rest[]`)
	f("--bootstrap-server= a:1", `bootstrap-server["a:1"] rest[]`)
	f("--bootstrap-server --list", `bootstrap-server["--list"] rest[]`)
	f("--bootstrap-server", "Option bootstrap-server requires an argument")
	f("--list=yes", `list[] rest[]`)
	f("--state --list", `state[] list[] rest[]`)
	f("--state Empty --list", `state["Empty"] list[] rest[]`)
	f("--list -- --describe", `list[] rest["--describe"]`)
	f("- x", ` rest["-" "x"]`)
	f("-vn5", `v[] n["5"] rest[]`)
	f("-n 5 -n -6", `n["5" "-6"] rest[]`)
	f("-vx", "x is not a recognized option")
	f("-5", "5 is not a recognized option")

	exact := testOptions(false)
	if err := exact.parse([]string{"--li"}); err == nil || err.Error() != "li is not a recognized option" {
		t.Errorf("without abbreviations: %v", err)
	}
}

func TestOptionValues(t *testing.T) {
	o := testOptions(false)
	if err := o.parse(strings.Fields("--partitions x --bootstrap-server a --bootstrap-server b")); err != nil {
		t.Fatal(err)
	}
	if _, err := o.byName["partitions"].integer(32); err == nil || err.Error() != "Cannot parse argument 'x' of option partitions" {
		t.Errorf("%v", err)
	}
	if _, err := o.byName["bootstrap-server"].one(); err == nil || err.Error() != "Found multiple arguments for option bootstrap-server, but you asked for only one" {
		t.Errorf("%v", err)
	}
	if n, err := o.byName["timeout"].integer(64); n != 5000 || err != nil {
		t.Errorf("default: %d %v", n, err)
	}
}

func TestHelpTable(t *testing.T) {
	o := &options{}
	o.value("bootstrap-server", "String", "server to connect to", "REQUIRED: The Kafka server to connect to.")
	o.value("timeout", "Long", "milliseconds", "The maximum allowed time in milliseconds between returned records.").optional().withDefault("10000")
	o.flag("list", "List all available topics.")
	want := `Option                                   Description                            
------                                   -----------                            
--bootstrap-server <String: server to    REQUIRED: The Kafka server to connect  
  connect to>                              to.                                  
--list                                   List all available topics.             
--timeout [Long: milliseconds]           The maximum allowed time in            
                                           milliseconds between returned        
                                           records. (default: 10000)            
`
	if got := o.table(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestJustified(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := justified(text, 75); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
	f("kafka-producer-perf-test: error: one of the arguments --record-size --payload-file --payload-monotonic is required",
		"kafka-producer-perf-test: error:  one  of  the  arguments  --record-size --\npayload-file --payload-monotonic is required")
	f(`kafka-producer-perf-test: error: argument --num-records: could not convert 'abc' to Long (For input string: "abc")`,
		"kafka-producer-perf-test: error: argument --num-records:  could not convert\n'abc' to Long (For input string: \"abc\")")
	f("kafka-producer-perf-test: error: --transaction-duration-ms should be greater than zero.",
		"kafka-producer-perf-test:  error:   --transaction-duration-ms   should   be\ngreater than zero.")
	f("kafka-producer-perf-test: error: The value for --warmup-records must be strictly fewer than the number of records in the test, --num-records.",
		"kafka-producer-perf-test: error: The  value  for  --warmup-records  must be\nstrictly fewer than the number of records in the test, --num-records.")
}

func TestHashOrder(t *testing.T) {
	// As Kafka's tool printed them.
	if got := hashOrder([]string{"a.b", "a1", "x1"}); strings.Join(got, " ") != "a1 a.b x1" {
		t.Errorf("%v", got)
	}
}

// What is parsed neither panics nor loses a word that is no flag's value.
func FuzzOptions(f *testing.F) {
	for _, s := range []string{"--list", "--bootstrap-server a:1 --li x", "-vn5 -- --list", "--state=", "- -- -", "-\xff", "--=", "-n"} {
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, line string, abbreviate bool) {
		args := strings.Split(line, " ")
		o := testOptions(abbreviate)
		if o.parse(args) != nil {
			return
		}
		words := len(o.rest)
		for _, f := range o.all {
			words += len(f.values)
			if f.kind == "" && len(f.values) > 0 {
				t.Errorf("%q: --%s has no value, but got %q", line, f.names[0], f.values)
			}
		}
		if words > len(args) {
			t.Errorf("%q: %d words made of %d", line, words, len(args))
		}
		o.table()
	})
}

func TestTool(t *testing.T) {
	f := func(arg, want string, wantOK bool) {
		t.Helper()
		if got, ok := Tool(arg); got != want && wantOK || ok != wantOK {
			t.Errorf("%s: %s %v", arg, got, ok)
		}
	}
	f("kafka-topics", "kafka-topics", true)
	f("/usr/bin/kafka-topics.sh", "kafka-topics", true)
	f("kafka-acls.sh", "kafka-acls", true)
	f("weir", "", false)
	f("kafka-nonsense", "", false)
	f("", "", false)
}
