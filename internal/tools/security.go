package tools

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

type tlsSettings struct {
	on                bool
	caFile, caPEM     string
	certFile, certPEM string
	keyFile, keyPEM   string
	insecure, anyName bool // trust any certificate; trust any host name
}

// config is nil when the connection is not encrypted.
func (t *tlsSettings) config() (*tls.Config, error) {
	if !t.on {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: t.insecure}
	ca := []byte(t.caPEM)
	if t.caFile != "" {
		b, err := os.ReadFile(t.caFile)
		if err != nil {
			return nil, usagef("cannot read ssl.ca.location: %w", err)
		}
		ca = b
	}
	if len(ca) > 0 {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(ca) {
			return nil, usagef("ssl.ca.location %s holds no PEM certificate: convert a key store with keytool -exportcert -rfc", t.caFile)
		}
	}
	cert, key := []byte(t.certPEM), []byte(t.keyPEM)
	if t.certFile != "" {
		b, err := os.ReadFile(t.certFile)
		if err != nil {
			return nil, usagef("cannot read ssl.certificate.location: %w", err)
		}
		cert = b
		if t.keyFile == "" && len(key) == 0 {
			key = b // one PEM file with both, as Java takes it
		}
	}
	if t.keyFile != "" {
		b, err := os.ReadFile(t.keyFile)
		if err != nil {
			return nil, usagef("cannot read ssl.key.location: %w", err)
		}
		key = b
	}
	if len(cert) > 0 {
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, usagef("the client certificate and key do not fit together: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if t.anyName && !t.insecure {
		// The chain is checked still, only the name is not.
		c.InsecureSkipVerify = true
		roots := c.RootCAs
		c.VerifyConnection = func(s tls.ConnectionState) error {
			o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
			for _, m := range s.PeerCertificates[1:] {
				o.Intermediates.AddCert(m)
			}
			_, err := s.PeerCertificates[0].Verify(o)
			return err
		}
	}
	return c, nil
}

type saslSettings struct {
	on             bool
	mechanism      string
	user, password string
}

func (s *saslSettings) setMechanism(v string) error {
	switch v = strings.ToUpper(v); v {
	case "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512":
		s.mechanism = v
		return nil
	}
	return fmt.Errorf("want PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
}

var jaasOption = regexp.MustCompile(`(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]+))`)

// setJAAS takes user and password out of the Java client's login line.
func (s *saslSettings) setJAAS(v string) error {
	for _, m := range jaasOption.FindAllStringSubmatch(v, -1) {
		value := m[3]
		if value == "" {
			value = strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(m[2])
		}
		switch m[1] {
		case "username":
			s.user = value
		case "password":
			s.password = value
		}
	}
	if s.user == "" {
		return fmt.Errorf("want a login module with username=\"…\" password=\"…\"")
	}
	return nil
}

func (s *saslSettings) build() (sasl.Mechanism, error) {
	if !s.on {
		if s.user != "" {
			return nil, usagef("sasl.username is set and security.protocol is not SASL: add -X security.protocol=SASL_PLAINTEXT or SASL_SSL")
		}
		return nil, nil
	}
	if s.user == "" {
		return nil, usagef("security.protocol asks for SASL: add -X sasl.username=… -X sasl.password=…")
	}
	switch s.mechanism {
	case "SCRAM-SHA-256":
		return scram.Auth{User: s.user, Pass: s.password}.AsSha256Mechanism(), nil
	case "SCRAM-SHA-512":
		return scram.Auth{User: s.user, Pass: s.password}.AsSha512Mechanism(), nil
	case "", "PLAIN":
		return plain.Auth{User: s.user, Pass: s.password}.AsMechanism(), nil
	}
	return nil, usagef("sasl.mechanism %s is not known", s.mechanism)
}
