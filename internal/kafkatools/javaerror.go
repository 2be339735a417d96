package kafkatools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// javaError is a failure as a Java client tells it: the exception's class, which
// people grep for, and its message.
type javaError struct {
	class   string // full name
	message string
	cause   *javaError // of a wrapping exception
}

func (e *javaError) Error() string { return e.message }

// line is the exception as Java prints it, without the stack.
func (e *javaError) line() string {
	s := e.class
	if e.message != "" {
		s += ": " + e.message
	}
	if e.cause != nil {
		s += "\nCaused by: " + e.cause.line()
	}
	return s
}

const apiErrors = "org.apache.kafka.common.errors."

func illegalArgument(format string, args ...any) *javaError {
	return &javaError{class: "java.lang.IllegalArgumentException", message: fmt.Sprintf(format, args...)}
}

func configError(format string, args ...any) *javaError {
	return &javaError{class: "org.apache.kafka.common.config.ConfigException", message: fmt.Sprintf(format, args...)}
}

// terse is an error that a tool tells without its class.
func terse(format string, args ...any) error {
	return &javaError{class: "org.apache.kafka.tools.TerseException", message: fmt.Sprintf(format, args...)}
}

// wrapped is err as the cause of another exception.
func wrapped(class string, err error) error {
	e := java("", err)
	return &javaError{class: class, message: e.line(), cause: e}
}

func timedOut(call string) *javaError {
	return &javaError{class: apiErrors + "TimeoutException", message: "Timed out waiting for a node assignment. Call: " + call}
}

// classNames are the exceptions whose class is not their code's name in camel case.
var classNames = map[int16]string{
	-1: "UnknownServerException", 2: "CorruptRecordException", 7: "TimeoutException", 10: "RecordTooLargeException",
	11: "ControllerMovedException", 12: "OffsetMetadataTooLarge", 13: "NetworkException", 17: "InvalidTopicException",
	18: "RecordBatchTooLargeException", 29: "TopicAuthorizationException", 30: "GroupAuthorizationException",
	31: "ClusterAuthorizationException", 36: "TopicExistsException", 40: "InvalidConfigurationException",
	45: "OutOfOrderSequenceException", 46: "DuplicateSequenceException", 49: "InvalidPidMappingException",
	50: "InvalidTxnTimeoutException", 53: "TransactionalIdAuthorizationException", 56: "KafkaStorageException",
	58: "SaslAuthenticationException", 61: "DelegationTokenDisabledException", 64: "UnsupportedByAuthenticationException",
	65: "DelegationTokenAuthorizationException", 68: "GroupNotEmptyException", 97: "PrincipalDeserializationException",
	106: "FetchSessionTopicIdException", 128: "InvalidRegularExpression",
}

// exceptionClass is the Java exception of a protocol error.
func exceptionClass(code int16) string {
	if c := classNames[code]; c != "" {
		return apiErrors + c
	}
	var b strings.Builder
	if e := kerr.TypedErrorForCode(code); e != nil {
		for part := range strings.SplitSeq(strings.ToLower(e.Message), "_") {
			if part != "" {
				b.WriteString(strings.ToUpper(part[:1]) + part[1:])
			}
		}
	}
	return apiErrors + b.String() + "Exception"
}

// answered turns a code and the broker's message into an error; nil for none.
// Without a message it says what the protocol's own table says.
func answered(code int16, message *string) error {
	if code == 0 {
		return nil
	}
	e := &javaError{class: exceptionClass(code)}
	switch ke := kerr.TypedErrorForCode(code); {
	case message != nil:
		e.message = *message
	case ke != nil:
		e.message = ke.Description
	}
	return e
}

// java turns whatever the client returned into an error as Java tells it. call is
// what was asked for, by the Java client's name ("listTopics").
func java(call string, err error) *javaError {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*javaError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*optionError](err); ok {
		return &javaError{class: e.class, message: e.message}
	}
	if e, ok := errors.AsType[*kerr.Error](err); ok {
		return answered(e.Code, nil).(*javaError)
	}
	if errors.Is(err, context.Canceled) {
		return &javaError{class: "java.lang.InterruptedException", message: "interrupted"}
	}
	if call != "" {
		return timedOut(call)
	}
	return &javaError{class: apiErrors + "TimeoutException", message: err.Error()}
}

// logLine is a line of the Java tools' log on stderr.
func logLine(level, message, logger string) string {
	return fmt.Sprintf("[%s] %s %s (%s)\n", time.Now().Format("2006-01-02 15:04:05,000"), level, message, logger)
}
