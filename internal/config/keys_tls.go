package config

// Keys of TLS.
var tlsKeys = []spec{
	{"ssl.allow.dn.changes", Bool, "false", "", Low, ReadOnly, "", live, ""},
	{"ssl.allow.san.changes", Bool, "false", "", Low, ReadOnly, "", live, ""},
	{"ssl.cipher.suites", List, "", "", Medium, PerBroker, "", live, ""},
	{"ssl.client.auth", String, "none", "[required, requested, none]", Medium, PerBroker, "", live, ""},
	{"ssl.enabled.protocols", List, "TLSv1.2,TLSv1.3", "", Medium, PerBroker, "", live, ""},
	{"ssl.endpoint.identification.algorithm", String, "https", "", Low, PerBroker, "", live, ""},
	{"ssl.engine.factory.class", Class, null, "", Low, PerBroker, "", live, ""},
	{"ssl.key.password", Password, null, "", Medium, PerBroker, "", live, ""},
	{"ssl.keymanager.algorithm", String, "SunX509", "", Medium, PerBroker, "", live, ""},
	{"ssl.keystore.certificate.chain", Password, null, "", Medium, PerBroker, "", live, ""},
	{"ssl.keystore.key", Password, null, "", Medium, PerBroker, "", live, ""},
	{"ssl.keystore.location", String, null, "", Medium, PerBroker, "", live, ""},
	{"ssl.keystore.password", Password, null, "", Medium, PerBroker, "", live, ""},
	{"ssl.keystore.type", String, "JKS", "", Medium, PerBroker, "", live, ""},
	{"ssl.principal.mapping.rules", String, "DEFAULT", "", Low, ReadOnly, "", live, ""},
	{"ssl.protocol", String, "TLSv1.3", "", Medium, PerBroker, "", live, ""},
	{"ssl.provider", String, null, "", Medium, PerBroker, "", live, ""},
	{"ssl.secure.random.implementation", String, null, "", Low, PerBroker, "", live, ""},
	{"ssl.trustmanager.algorithm", String, "PKIX", "", Medium, PerBroker, "", live, ""},
	{"ssl.truststore.certificates", Password, null, "", Medium, PerBroker, "", live, ""},
	{"ssl.truststore.location", String, null, "", Medium, PerBroker, "", live, ""},
	{"ssl.truststore.password", Password, null, "", Medium, PerBroker, "", live, ""},
	{"ssl.truststore.type", String, "JKS", "", Medium, PerBroker, "", live, ""},
}
