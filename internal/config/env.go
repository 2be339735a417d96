package config

import "strings"

// fromEnv reads an environment variable as the usual container images do: a
// name that begins with KAFKA_ (or KAFKA_CFG_, as one family of images has it)
// holds a key in capitals, "_" for ".", "__" for "_", "___" for "-". WEIR_X
// stands for weir.x. ok is false for what is no setting of ours; then notice
// says so when a reader could think it is.
func fromEnv(name string) (key, notice string, ok bool) {
	if rest, found := strings.CutPrefix(name, "WEIR_"); found && rest != "" {
		return "weir." + envKey(rest), "", true
	}
	rest, found := strings.CutPrefix(name, "KAFKA_")
	if !found || rest == "" {
		return "", "", false
	}
	if why := foreignEnv(rest); why != "" {
		return "", name + " has no effect: " + why + ".", false
	}
	rest = strings.TrimPrefix(rest, "CFG_")
	if rest == "" {
		return "", "", false
	}
	return envKey(rest), "", true
}

// envKey maps NUM_PARTITIONS to num.partitions.
func envKey(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		n := 0
		for i+n < len(s) && s[i+n] == '_' && n < 3 {
			n++
		}
		if n == 0 {
			b.WriteByte(lower(s[i]))
			i++
			continue
		}
		b.WriteByte(" ._-"[n])
		i += n
	}
	return b.String()
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// foreignEnv says what a KAFKA_ variable is for that is not a setting of the
// broker; empty for settings. name is without KAFKA_.
func foreignEnv(name string) string {
	switch name {
	case "HEAP_OPTS", "JVM_PERFORMANCE_OPTS", "OPTS", "GC_LOG_OPTS", "JMX_OPTS", "JMX_PORT", "JMX_HOSTNAME",
		"EXTRA_ARGS", "DEBUG", "JAVA_DEBUG_PORT", "JAVA_DEBUG_OPTS", "CLASSPATH", "HEAP_SIZE", "JAVA_OPTS":
		return "it is for a Java process, and Weir is none"
	case "LOG4J_OPTS", "LOG4J_LOGGERS", "LOG4J_ROOT_LOGLEVEL", "LOG4J_CMD_OPTS", "TOOLS_LOG4J_LOGLEVEL":
		return "it is for Kafka's logging library"
	case "VERSION", "HOME", "USER", "DATA_DIR", "CONF_DIR", "BASE_DIR", "VOLUME_DIR", "DAEMON_USER", "DAEMON_GROUP",
		"MOUNTED_CONF_DIR", "SCALA_VERSION", "URL", "MODE", "CREATE_TOPICS", "CERTIFICATE_PASSWORD", "TLS_TYPE", "TLS_CLIENT_AUTH",
		"CLIENT_USERS", "CLIENT_PASSWORDS", "INTER_BROKER_USER", "INTER_BROKER_PASSWORD", "CONTROLLER_USER", "CONTROLLER_PASSWORD":
		return "it belongs to a container image of Kafka, not to the broker"
	case "CLUSTER_ID", "KRAFT_CLUSTER_ID":
		return "" // set apart by Load
	}
	// Kubernetes puts these into every container beside a service named "kafka".
	if name == "PORT" || strings.HasPrefix(name, "PORT_") || strings.HasPrefix(name, "SERVICE_") {
		return "Kubernetes sets it for a service named kafka"
	}
	return ""
}
