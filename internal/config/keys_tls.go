package config

// Keys of TLS.
var tlsKeys = []spec{
	{"ssl.allow.dn.changes", Bool, "false", "", Low, ReadOnly, "", needsTLS, "Whether a new certificate may have another distinguished name."},
	{"ssl.allow.san.changes", Bool, "false", "", Low, ReadOnly, "", needsTLS, "Whether a new certificate may have other host names."},
	{"ssl.cipher.suites", List, "", "", Medium, PerBroker, "", needsTLS, "Cipher suites to allow."},
	{"ssl.client.auth", String, "none", "[required, requested, none]", Medium, PerBroker, "", needsTLS, "Whether clients must show a certificate."},
	{"ssl.enabled.protocols", List, "TLSv1.2,TLSv1.3", "", Medium, PerBroker, "", needsTLS, "TLS versions to allow."},
	{"ssl.endpoint.identification.algorithm", String, "https", "", Low, PerBroker, "", needsTLS, "How the other side's host name is checked; empty does not."},
	{"ssl.engine.factory.class", Class, null, "", Low, PerBroker, "", noJVM, "Class that makes TLS engines."},
	{"ssl.key.password", Password, null, "", Medium, PerBroker, "", needsTLS, "Password of the private key."},
	{"ssl.keymanager.algorithm", String, "SunX509", "", Medium, PerBroker, "", noJVM, "Java's algorithm for the key manager."},
	{"ssl.keystore.certificate.chain", Password, null, "", Medium, PerBroker, "", needsTLS, "Own certificate and those above it, as PEM text."},
	{"ssl.keystore.key", Password, null, "", Medium, PerBroker, "", needsTLS, "Private key, as PEM text."},
	{"ssl.keystore.location", String, null, "", Medium, PerBroker, "", needsTLS, "File of key and certificate."},
	{"ssl.keystore.password", Password, null, "", Medium, PerBroker, "", needsTLS, "Password of that file."},
	{"ssl.keystore.type", String, "JKS", "", Medium, PerBroker, "", needsTLS, "Format of that file: PEM, PKCS12 or JKS."},
	{"ssl.principal.mapping.rules", String, "DEFAULT", "", Low, ReadOnly, "", needsTLS, "Rules from a certificate's distinguished name to a user's name."},
	{"ssl.protocol", String, "TLSv1.3", "", Medium, PerBroker, "", needsTLS, "Newest TLS version to offer."},
	{"ssl.provider", String, null, "", Medium, PerBroker, "", noJVM, "Java security provider for TLS."},
	{"ssl.secure.random.implementation", String, null, "", Low, PerBroker, "", noJVM, "Java's source of random numbers for TLS."},
	{"ssl.trustmanager.algorithm", String, "PKIX", "", Medium, PerBroker, "", noJVM, "Java's algorithm for the trust manager."},
	{"ssl.truststore.certificates", Password, null, "", Medium, PerBroker, "", needsTLS, "Trusted certificates, as PEM text."},
	{"ssl.truststore.location", String, null, "", Medium, PerBroker, "", needsTLS, "File of trusted certificates."},
	{"ssl.truststore.password", Password, null, "", Medium, PerBroker, "", needsTLS, "Password of that file."},
	{"ssl.truststore.type", String, "JKS", "", Medium, PerBroker, "", needsTLS, "Format of that file: PEM, PKCS12 or JKS."},
}
