#ifndef PLANEWISE_PROTO_STATUS_STATUS_CODEC_H_
#define PLANEWISE_PROTO_STATUS_STATUS_CODEC_H_
// The one conversion between absl::Status (with the details of
// core/base/error.h) and google.rpc.Status, for daemon and clients alike. What
// detail goes with which code: proto/README.md, "Errors".
//
// Not here: grpc::Status (grpc_status.h), the list of reasons
// (core/base/reason.h).

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/reason.h"
#include "google/rpc/status.pb.h"

namespace planewise {

// ErrorInfo.domain of every error that Planewise makes.
inline constexpr absl::string_view kErrorDomain = "planewise";

// The message for `status`: code 0 and nothing else for OK, else the code, the
// message and its details. A status without details gets the reason that
// DefaultReason gives its code, so that every failure has an ErrorInfo. Text
// that is not UTF-8 is escaped byte by byte: protobuf would refuse it.
google::rpc::Status StatusToProto(const absl::Status& status);

// The inverse. Details that this build does not know are dropped; a reason
// that it does not know (a newer peer) becomes DefaultReason of the code with
// the name under the metadata key "peerReason".
absl::Status StatusFromProto(const google::rpc::Status& proto);

// The reason that says no more than the code; INTERNAL where there is none.
Reason DefaultReason(absl::StatusCode code);

}  // namespace planewise

#endif  // PLANEWISE_PROTO_STATUS_STATUS_CODEC_H_
