package kafka

import "strconv"

// Error is a protocol error code: what a response carries and what a client
// decides on. Zero means success. Source: Kafka 4.4's table of errors.
type Error int16

// The codes, by Kafka's own names.
const (
	ErrUnknownServerError                     Error = -1
	NoError                                   Error = 0
	ErrOffsetOutOfRange                       Error = 1
	ErrCorruptMessage                         Error = 2
	ErrUnknownTopicOrPartition                Error = 3
	ErrInvalidFetchSize                       Error = 4
	ErrLeaderNotAvailable                     Error = 5
	ErrNotLeaderOrFollower                    Error = 6
	ErrRequestTimedOut                        Error = 7
	ErrBrokerNotAvailable                     Error = 8
	ErrReplicaNotAvailable                    Error = 9
	ErrMessageTooLarge                        Error = 10
	ErrStaleControllerEpoch                   Error = 11
	ErrOffsetMetadataTooLarge                 Error = 12
	ErrNetworkException                       Error = 13
	ErrCoordinatorLoadInProgress              Error = 14
	ErrCoordinatorNotAvailable                Error = 15
	ErrNotCoordinator                         Error = 16
	ErrInvalidTopicException                  Error = 17
	ErrRecordListTooLarge                     Error = 18
	ErrNotEnoughReplicas                      Error = 19
	ErrNotEnoughReplicasAfterAppend           Error = 20
	ErrInvalidRequiredAcks                    Error = 21
	ErrIllegalGeneration                      Error = 22
	ErrInconsistentGroupProtocol              Error = 23
	ErrInvalidGroupID                         Error = 24
	ErrUnknownMemberID                        Error = 25
	ErrInvalidSessionTimeout                  Error = 26
	ErrRebalanceInProgress                    Error = 27
	ErrInvalidCommitOffsetSize                Error = 28
	ErrTopicAuthorizationFailed               Error = 29
	ErrGroupAuthorizationFailed               Error = 30
	ErrClusterAuthorizationFailed             Error = 31
	ErrInvalidTimestamp                       Error = 32
	ErrUnsupportedSaslMechanism               Error = 33
	ErrIllegalSaslState                       Error = 34
	ErrUnsupportedVersion                     Error = 35
	ErrTopicAlreadyExists                     Error = 36
	ErrInvalidPartitions                      Error = 37
	ErrInvalidReplicationFactor               Error = 38
	ErrInvalidReplicaAssignment               Error = 39
	ErrInvalidConfig                          Error = 40
	ErrNotController                          Error = 41
	ErrInvalidRequest                         Error = 42
	ErrUnsupportedForMessageFormat            Error = 43
	ErrPolicyViolation                        Error = 44
	ErrOutOfOrderSequenceNumber               Error = 45
	ErrDuplicateSequenceNumber                Error = 46
	ErrInvalidProducerEpoch                   Error = 47
	ErrInvalidTxnState                        Error = 48
	ErrInvalidProducerIDMapping               Error = 49
	ErrInvalidTransactionTimeout              Error = 50
	ErrConcurrentTransactions                 Error = 51
	ErrTransactionCoordinatorFenced           Error = 52
	ErrTransactionalIDAuthorizationFailed     Error = 53
	ErrSecurityDisabled                       Error = 54
	ErrOperationNotAttempted                  Error = 55
	ErrKafkaStorageError                      Error = 56
	ErrLogDirNotFound                         Error = 57
	ErrSaslAuthenticationFailed               Error = 58
	ErrUnknownProducerID                      Error = 59
	ErrReassignmentInProgress                 Error = 60
	ErrDelegationTokenAuthDisabled            Error = 61
	ErrDelegationTokenNotFound                Error = 62
	ErrDelegationTokenOwnerMismatch           Error = 63
	ErrDelegationTokenRequestNotAllowed       Error = 64
	ErrDelegationTokenAuthorizationFailed     Error = 65
	ErrDelegationTokenExpired                 Error = 66
	ErrInvalidPrincipalType                   Error = 67
	ErrNonEmptyGroup                          Error = 68
	ErrGroupIDNotFound                        Error = 69
	ErrFetchSessionIDNotFound                 Error = 70
	ErrInvalidFetchSessionEpoch               Error = 71
	ErrListenerNotFound                       Error = 72
	ErrTopicDeletionDisabled                  Error = 73
	ErrFencedLeaderEpoch                      Error = 74
	ErrUnknownLeaderEpoch                     Error = 75
	ErrUnsupportedCompressionType             Error = 76
	ErrStaleBrokerEpoch                       Error = 77
	ErrOffsetNotAvailable                     Error = 78
	ErrMemberIDRequired                       Error = 79
	ErrPreferredLeaderNotAvailable            Error = 80
	ErrGroupMaxSizeReached                    Error = 81
	ErrFencedInstanceID                       Error = 82
	ErrEligibleLeadersNotAvailable            Error = 83
	ErrElectionNotNeeded                      Error = 84
	ErrNoReassignmentInProgress               Error = 85
	ErrGroupSubscribedToTopic                 Error = 86
	ErrInvalidRecord                          Error = 87
	ErrUnstableOffsetCommit                   Error = 88
	ErrThrottlingQuotaExceeded                Error = 89
	ErrProducerFenced                         Error = 90
	ErrResourceNotFound                       Error = 91
	ErrDuplicateResource                      Error = 92
	ErrUnacceptableCredential                 Error = 93
	ErrInconsistentVoterSet                   Error = 94
	ErrInvalidUpdateVersion                   Error = 95
	ErrFeatureUpdateFailed                    Error = 96
	ErrPrincipalDeserializationFailure        Error = 97
	ErrSnapshotNotFound                       Error = 98
	ErrPositionOutOfRange                     Error = 99
	ErrUnknownTopicID                         Error = 100
	ErrDuplicateBrokerRegistration            Error = 101
	ErrBrokerIDNotRegistered                  Error = 102
	ErrInconsistentTopicID                    Error = 103
	ErrInconsistentClusterID                  Error = 104
	ErrTransactionalIDNotFound                Error = 105
	ErrFetchSessionTopicIDError               Error = 106
	ErrIneligibleReplica                      Error = 107
	ErrNewLeaderElected                       Error = 108
	ErrOffsetMovedToTieredStorage             Error = 109
	ErrFencedMemberEpoch                      Error = 110
	ErrUnreleasedInstanceID                   Error = 111
	ErrUnsupportedAssignor                    Error = 112
	ErrStaleMemberEpoch                       Error = 113
	ErrMismatchedEndpointType                 Error = 114
	ErrUnsupportedEndpointType                Error = 115
	ErrUnknownControllerID                    Error = 116
	ErrUnknownSubscriptionID                  Error = 117
	ErrTelemetryTooLarge                      Error = 118
	ErrInvalidRegistration                    Error = 119
	ErrTransactionAbortable                   Error = 120
	ErrInvalidRecordState                     Error = 121
	ErrShareSessionNotFound                   Error = 122
	ErrInvalidShareSessionEpoch               Error = 123
	ErrFencedStateEpoch                       Error = 124
	ErrInvalidVoterKey                        Error = 125
	ErrDuplicateVoter                         Error = 126
	ErrVoterNotFound                          Error = 127
	ErrInvalidRegularExpression               Error = 128
	ErrRebootstrapRequired                    Error = 129
	ErrStreamsInvalidTopology                 Error = 130
	ErrStreamsInvalidTopologyEpoch            Error = 131
	ErrStreamsTopologyFenced                  Error = 132
	ErrShareSessionLimitReached               Error = 133
	ErrGroupDeletionFailed                    Error = 134
	ErrStreamsTopologyDescriptionUpdateFailed Error = 135
	ErrControllerIDNotRegistered              Error = 136
)

// Error gives name and code, for logs: "OFFSET_OUT_OF_RANGE (1)".
func (e Error) Error() string { return e.Name() + " (" + strconv.Itoa(int(e)) + ")" }

// Name is Kafka's name of the code, or UNKNOWN for a code outside the table.
func (e Error) Name() string {
	if i, ok := errorIndex(e); ok {
		return errorTable[i].name
	}
	return "UNKNOWN"
}

// Retriable says whether Kafka's clients try again after this code.
func (e Error) Retriable() bool {
	i, ok := errorIndex(e)
	return ok && errorTable[i].retriable
}

func errorIndex(e Error) (int, bool) {
	i := int(e) + 1 // the table begins at -1 and has no gaps
	return i, i >= 0 && i < len(errorTable)
}

var errorTable = [...]struct {
	name      string
	retriable bool
}{
	{"UNKNOWN_SERVER_ERROR", false},
	{"NONE", false},
	{"OFFSET_OUT_OF_RANGE", false},
	{"CORRUPT_MESSAGE", true},
	{"UNKNOWN_TOPIC_OR_PARTITION", true},
	{"INVALID_FETCH_SIZE", false},
	{"LEADER_NOT_AVAILABLE", true},
	{"NOT_LEADER_OR_FOLLOWER", true},
	{"REQUEST_TIMED_OUT", true},
	{"BROKER_NOT_AVAILABLE", false},
	{"REPLICA_NOT_AVAILABLE", true},
	{"MESSAGE_TOO_LARGE", false},
	{"STALE_CONTROLLER_EPOCH", false},
	{"OFFSET_METADATA_TOO_LARGE", false},
	{"NETWORK_EXCEPTION", true},
	{"COORDINATOR_LOAD_IN_PROGRESS", true},
	{"COORDINATOR_NOT_AVAILABLE", true},
	{"NOT_COORDINATOR", true},
	{"INVALID_TOPIC_EXCEPTION", false},
	{"RECORD_LIST_TOO_LARGE", false},
	{"NOT_ENOUGH_REPLICAS", true},
	{"NOT_ENOUGH_REPLICAS_AFTER_APPEND", true},
	{"INVALID_REQUIRED_ACKS", false},
	{"ILLEGAL_GENERATION", false},
	{"INCONSISTENT_GROUP_PROTOCOL", false},
	{"INVALID_GROUP_ID", false},
	{"UNKNOWN_MEMBER_ID", false},
	{"INVALID_SESSION_TIMEOUT", false},
	{"REBALANCE_IN_PROGRESS", false},
	{"INVALID_COMMIT_OFFSET_SIZE", false},
	{"TOPIC_AUTHORIZATION_FAILED", false},
	{"GROUP_AUTHORIZATION_FAILED", false},
	{"CLUSTER_AUTHORIZATION_FAILED", false},
	{"INVALID_TIMESTAMP", false},
	{"UNSUPPORTED_SASL_MECHANISM", false},
	{"ILLEGAL_SASL_STATE", false},
	{"UNSUPPORTED_VERSION", false},
	{"TOPIC_ALREADY_EXISTS", false},
	{"INVALID_PARTITIONS", false},
	{"INVALID_REPLICATION_FACTOR", false},
	{"INVALID_REPLICA_ASSIGNMENT", false},
	{"INVALID_CONFIG", false},
	{"NOT_CONTROLLER", true},
	{"INVALID_REQUEST", false},
	{"UNSUPPORTED_FOR_MESSAGE_FORMAT", false},
	{"POLICY_VIOLATION", false},
	{"OUT_OF_ORDER_SEQUENCE_NUMBER", false},
	{"DUPLICATE_SEQUENCE_NUMBER", false},
	{"INVALID_PRODUCER_EPOCH", false},
	{"INVALID_TXN_STATE", false},
	{"INVALID_PRODUCER_ID_MAPPING", false},
	{"INVALID_TRANSACTION_TIMEOUT", false},
	{"CONCURRENT_TRANSACTIONS", true},
	{"TRANSACTION_COORDINATOR_FENCED", false},
	{"TRANSACTIONAL_ID_AUTHORIZATION_FAILED", false},
	{"SECURITY_DISABLED", false},
	{"OPERATION_NOT_ATTEMPTED", false},
	{"KAFKA_STORAGE_ERROR", true},
	{"LOG_DIR_NOT_FOUND", false},
	{"SASL_AUTHENTICATION_FAILED", false},
	{"UNKNOWN_PRODUCER_ID", false},
	{"REASSIGNMENT_IN_PROGRESS", false},
	{"DELEGATION_TOKEN_AUTH_DISABLED", false},
	{"DELEGATION_TOKEN_NOT_FOUND", false},
	{"DELEGATION_TOKEN_OWNER_MISMATCH", false},
	{"DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", false},
	{"DELEGATION_TOKEN_AUTHORIZATION_FAILED", false},
	{"DELEGATION_TOKEN_EXPIRED", false},
	{"INVALID_PRINCIPAL_TYPE", false},
	{"NON_EMPTY_GROUP", false},
	{"GROUP_ID_NOT_FOUND", false},
	{"FETCH_SESSION_ID_NOT_FOUND", true},
	{"INVALID_FETCH_SESSION_EPOCH", true},
	{"LISTENER_NOT_FOUND", true},
	{"TOPIC_DELETION_DISABLED", false},
	{"FENCED_LEADER_EPOCH", true},
	{"UNKNOWN_LEADER_EPOCH", true},
	{"UNSUPPORTED_COMPRESSION_TYPE", false},
	{"STALE_BROKER_EPOCH", false},
	{"OFFSET_NOT_AVAILABLE", true},
	{"MEMBER_ID_REQUIRED", false},
	{"PREFERRED_LEADER_NOT_AVAILABLE", true},
	{"GROUP_MAX_SIZE_REACHED", false},
	{"FENCED_INSTANCE_ID", false},
	{"ELIGIBLE_LEADERS_NOT_AVAILABLE", true},
	{"ELECTION_NOT_NEEDED", true},
	{"NO_REASSIGNMENT_IN_PROGRESS", false},
	{"GROUP_SUBSCRIBED_TO_TOPIC", false},
	{"INVALID_RECORD", false},
	{"UNSTABLE_OFFSET_COMMIT", true},
	{"THROTTLING_QUOTA_EXCEEDED", true},
	{"PRODUCER_FENCED", false},
	{"RESOURCE_NOT_FOUND", false},
	{"DUPLICATE_RESOURCE", false},
	{"UNACCEPTABLE_CREDENTIAL", false},
	{"INCONSISTENT_VOTER_SET", false},
	{"INVALID_UPDATE_VERSION", false},
	{"FEATURE_UPDATE_FAILED", false},
	{"PRINCIPAL_DESERIALIZATION_FAILURE", false},
	{"SNAPSHOT_NOT_FOUND", false},
	{"POSITION_OUT_OF_RANGE", false},
	{"UNKNOWN_TOPIC_ID", true},
	{"DUPLICATE_BROKER_REGISTRATION", false},
	{"BROKER_ID_NOT_REGISTERED", false},
	{"INCONSISTENT_TOPIC_ID", true},
	{"INCONSISTENT_CLUSTER_ID", false},
	{"TRANSACTIONAL_ID_NOT_FOUND", false},
	{"FETCH_SESSION_TOPIC_ID_ERROR", true},
	{"INELIGIBLE_REPLICA", false},
	{"NEW_LEADER_ELECTED", false},
	{"OFFSET_MOVED_TO_TIERED_STORAGE", false},
	{"FENCED_MEMBER_EPOCH", false},
	{"UNRELEASED_INSTANCE_ID", false},
	{"UNSUPPORTED_ASSIGNOR", false},
	{"STALE_MEMBER_EPOCH", false},
	{"MISMATCHED_ENDPOINT_TYPE", false},
	{"UNSUPPORTED_ENDPOINT_TYPE", false},
	{"UNKNOWN_CONTROLLER_ID", false},
	{"UNKNOWN_SUBSCRIPTION_ID", false},
	{"TELEMETRY_TOO_LARGE", false},
	{"INVALID_REGISTRATION", false},
	{"TRANSACTION_ABORTABLE", false},
	{"INVALID_RECORD_STATE", false},
	{"SHARE_SESSION_NOT_FOUND", true},
	{"INVALID_SHARE_SESSION_EPOCH", true},
	{"FENCED_STATE_EPOCH", false},
	{"INVALID_VOTER_KEY", false},
	{"DUPLICATE_VOTER", false},
	{"VOTER_NOT_FOUND", false},
	{"INVALID_REGULAR_EXPRESSION", false},
	{"REBOOTSTRAP_REQUIRED", false},
	{"STREAMS_INVALID_TOPOLOGY", false},
	{"STREAMS_INVALID_TOPOLOGY_EPOCH", false},
	{"STREAMS_TOPOLOGY_FENCED", false},
	{"SHARE_SESSION_LIMIT_REACHED", true},
	{"GROUP_DELETION_FAILED", false},
	{"STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED", false},
	{"CONTROLLER_ID_NOT_REGISTERED", false},
}
