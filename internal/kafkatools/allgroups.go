package kafkatools

import "strings"

// allGroups is kafka-groups.
func allGroups(c *call) error {
	o := &options{}
	server := o.value("bootstrap-server", "String", "server to connect to", "REQUIRED: The brokers to start from.")
	config := o.value("command-config", "String", "command config property file", "A properties file for the client.")
	list := o.flag("list", "List the groups.")
	kind := o.value("group-type", "String", "type", "Only groups of this type: classic, consumer, share or streams.")
	protocol := o.value("protocol", "String", "protocol", "Only groups of this protocol.")
	consumer := o.flag("consumer", "Only groups of consumers.")
	share := o.flag("share", "Only share groups.")
	streams := o.flag("streams", "Only streams groups.")
	common(o)
	if err := o.parse(c.args); err != nil {
		return usage(o, err.Error())
	}
	if o.byName["help"].given || o.byName["version"].given {
		return helpOrVersion(c, o, "This tool helps to list groups of all types.")
	}
	if !server.given {
		return usage(o, "Missing required option(s) [bootstrap-server]")
	}
	if !list.given {
		return usage(o, "Command must include exactly one action: --list.")
	}
	for _, m := range []string{
		refused(consumer, kind, protocol, share, streams), refused(share, consumer, kind, protocol, streams), refused(streams, consumer, kind, protocol, share),
	} {
		if m != "" {
			return usage(o, m)
		}
	}
	return thrownIf(func() error {
		servers, err := server.one()
		if err != nil {
			return err
		}
		file, err := config.one()
		if err != nil {
			return err
		}
		want, err := kind.one()
		if err != nil {
			return err
		}
		spoken, err := protocol.one()
		if err != nil {
			return err
		}
		switch strings.ToLower(want) {
		case "", "classic", "consumer", "share", "streams":
		default:
			return illegalArgument("--group-type must be a valid group type.")
		}
		k, err := c.admin(servers, file)
		if err != nil {
			return err
		}
		defer k.close()
		all, err := k.groups(nil, nil)
		if err != nil {
			return inFuture(err)
		}
		var rows [][3]string
		for _, g := range all {
			name := typeName(g.GroupType)
			switch {
			case kind.given && !strings.EqualFold(name, want),
				protocol.given && g.ProtocolType != spoken,
				share.given && name != "Share",
				streams.given && name != "Streams",
				consumer.given && name != "Consumer" && !(name == "Classic" && (g.ProtocolType == "consumer" || g.ProtocolType == "")):
				continue
			}
			rows = append(rows, [3]string{g.Group, name, g.ProtocolType})
		}
		width := 20
		for _, r := range rows {
			width = max(width, len(r[0]), len(r[1]), len(r[2]))
		}
		for _, r := range append([][3]string{{"GROUP", "TYPE", "PROTOCOL"}}, rows...) {
			c.printf("%-*s %-*s %-*s\n", width, r[0], width, r[1], width, r[2])
		}
		return nil
	}())
}
