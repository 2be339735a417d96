package broker

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirmq/weir/internal/kafka"
	"github.com/weirmq/weir/internal/wire"
)

// DescribeAcls 0-3, CreateAcls 0-3, DeleteAcls 0-3 on a broker without an
// authorizer: SECURITY_DISABLED, as Kafka answers. Consoles and librdkafka probe
// them and take this for "no ACLs here".

const noAuthorizer = "No Authorizer is configured."

func (b *Broker) describeACLs(r *wire.Request, req *kmsg.DescribeACLsRequest) wire.Response {
	resp := req.ResponseKind().(*kmsg.DescribeACLsResponse)
	resp.ErrorCode, resp.ErrorMessage = int16(kafka.ErrSecurityDisabled), ptr(noAuthorizer)
	return respond(resp)
}

func (b *Broker) createACLs(r *wire.Request, req *kmsg.CreateACLsRequest) wire.Response {
	resp := req.ResponseKind().(*kmsg.CreateACLsResponse)
	for range req.Creations {
		out := kmsg.NewCreateACLsResponseResult()
		out.ErrorCode, out.ErrorMessage = int16(kafka.ErrSecurityDisabled), ptr(noAuthorizer)
		resp.Results = append(resp.Results, out)
	}
	return respond(resp)
}

func (b *Broker) deleteACLs(r *wire.Request, req *kmsg.DeleteACLsRequest) wire.Response {
	resp := req.ResponseKind().(*kmsg.DeleteACLsResponse)
	for range req.Filters {
		out := kmsg.NewDeleteACLsResponseResult()
		out.ErrorCode, out.ErrorMessage = int16(kafka.ErrSecurityDisabled), ptr(noAuthorizer)
		resp.Results = append(resp.Results, out)
	}
	return respond(resp)
}
