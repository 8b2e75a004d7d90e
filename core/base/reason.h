#ifndef PLANEWISE_CORE_BASE_REASON_H_
#define PLANEWISE_CORE_BASE_REASON_H_
// Every reason a request can fail for, with its status code and whether a
// client may retry. The only such list: proto/README.md shows it to users and
// a test holds the two equal; clients decode by the name.
//
// Not here: building a status from a reason (error.h).

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace planewise {

// What a client does with an error besides showing it.
enum class Retry {
  kNever,        // The same request fails again.
  kSameRequest,  // Send the same request again after the stated delay.
  kRestartStep,  // Begin the step again: what it was pinned to is gone.
};

// X(enumerator, NAME, absl::StatusCode, Retry, meaning)
#define PW_REASONS(X)                                                                               \
  /* Malformed, whatever the state. */                                                              \
  X(kInvalidRequest, "INVALID_REQUEST", kInvalidArgument, kNever,                                   \
    "a field is missing or malformed; the field path is named")                                     \
  X(kShapeNotDivisible, "SHAPE_NOT_DIVISIBLE", kInvalidArgument, kNever,                            \
    "a weight dimension is not a multiple of the format's block; only the violated rule is listed") \
  X(kShapeMismatch, "SHAPE_MISMATCH", kInvalidArgument, kNever,                                     \
    "a tensor's shape is not the one the weight requires")                                          \
  X(kDtypeUnsupported, "DTYPE_UNSUPPORTED", kInvalidArgument, kNever,                               \
    "the element type is not allowed here")                                                         \
  X(kUnknownRecipe, "UNKNOWN_RECIPE", kInvalidArgument, kNever,                                     \
    "no recipe of that name; the known ones are listed")                                            \
  X(kOverrideUnsupportedForRecipe, "OVERRIDE_UNSUPPORTED_FOR_RECIPE", kInvalidArgument, kNever,     \
    "the recipe cannot take this backward_override")                                                \
  X(kOverrideUnsupportedForLayer, "OVERRIDE_UNSUPPORTED_FOR_LAYER", kInvalidArgument, kNever,       \
    "the layer kind cannot take this backward_override")                                            \
  X(kNonFiniteInTensor, "NON_FINITE_IN_TENSOR", kInvalidArgument, kNever,                           \
    "a NaN or infinity under the non-finite policy `reject`; tensor and first index are named")     \
  X(kPathOutsideRoots, "PATH_OUTSIDE_ROOTS", kInvalidArgument, kNever,                              \
    "a file path outside the configured roots")                                                     \
  X(kInvalidCheckpoint, "INVALID_CHECKPOINT", kInvalidArgument, kNever,                             \
    "a model directory that is incomplete, ambiguous or inconsistent")                              \
  X(kUnknownArchitecture, "UNKNOWN_ARCHITECTURE", kInvalidArgument, kNever,                         \
    "config.json names an architecture or key that is not known")                                   \
  X(kProtocolViolation, "PROTOCOL_VIOLATION", kInvalidArgument, kNever,                             \
    "a frame that the session's state table does not allow")                                        \
  X(kLimitExceeded, "LIMIT_EXCEEDED", kInvalidArgument, kNever,                                     \
    "a named limit of the API is exceeded; it is in the metadata")                                  \
  /* Names. */                                                                                      \
  X(kNotFound, "NOT_FOUND", kNotFound, kNever,                                                      \
    "no such model, tensor, version or session")                                                    \
  X(kAlreadyExists, "ALREADY_EXISTS", kAlreadyExists, kNever,                                       \
    "the name is taken")                                                                            \
  /* Legal request, wrong stored state or device. */                                                \
  X(kColumnwiseMissing, "COLUMNWISE_MISSING", kFailedPrecondition, kNever,                          \
    "a quantized backward needs a column plane that is not stored and cannot be derived")           \
  X(kRecipeMismatch, "RECIPE_MISMATCH", kFailedPrecondition, kNever,                                \
    "the weight is stored under another recipe class")                                              \
  X(kGeometryMismatch, "GEOMETRY_MISMATCH", kFailedPrecondition, kNever,                            \
    "the stored blocks have another geometry than the target's")                                    \
  X(kArchUnsupported, "ARCH_UNSUPPORTED", kFailedPrecondition, kNever,                              \
    "the device has no path for this recipe")                                                       \
  X(kBackwardDisabled, "BACKWARD_DISABLED", kFailedPrecondition, kNever,                            \
    "the model was created with backward_enabled=false")                                            \
  X(kNotTrainable, "NOT_TRAINABLE", kFailedPrecondition, kNever,                                    \
    "dW was asked of a forward that did not save the operand for it")                               \
  X(kUninitialized, "UNINITIALIZED", kFailedPrecondition, kNever,                                   \
    "the model has no committed version yet")                                                       \
  X(kValidationMoved, "VALIDATION_MOVED", kFailedPrecondition, kNever,                              \
    "what the switch was validated against has changed; validate again")                            \
  X(kNeedsMaster, "NEEDS_MASTER", kFailedPrecondition, kNever,                                      \
    "the target can only be made from master weights or a checkpoint that holds a source")          \
  X(kOperandsOutstanding, "OPERANDS_OUTSTANDING", kFailedPrecondition, kNever,                      \
    "saved operands that need the planes in question are not consumed yet")                         \
  X(kUnknownHandle, "UNKNOWN_HANDLE", kFailedPrecondition, kNever,                                  \
    "a saved-operand handle that never existed in this session")                                    \
  X(kModelBusy, "MODEL_BUSY", kFailedPrecondition, kNever,                                          \
    "the model is being created, switched or deleted")                                              \
  X(kStoreReadOnly, "STORE_READ_ONLY", kFailedPrecondition, kNever,                                 \
    "the store refused to sync once and takes no writes until a restart")                           \
  X(kStoreLocked, "STORE_LOCKED", kFailedPrecondition, kNever,                                      \
    "another process holds the store's lock")                                                       \
  X(kNoStore, "NO_STORE", kFailedPrecondition, kNever,                                              \
    "the daemon was started without a store")                                                       \
  X(kClientTooOld, "CLIENT_TOO_OLD", kFailedPrecondition, kNever,                                   \
    "client and server differ in the major API version")                                            \
  /* The client restarts the step. */                                                               \
  X(kVersionConflict, "VERSION_CONFLICT", kAborted, kRestartStep,                                   \
    "the base version is no longer the newest; both numbers are in the metadata")                   \
  X(kLeaseRevoked, "LEASE_REVOKED", kAborted, kRestartStep,                                         \
    "the version the step was pinned to was given up")                                              \
  X(kOperandEvicted, "OPERAND_EVICTED", kAborted, kRestartStep,                                     \
    "a saved operand was released, consumed or expired")                                            \
  X(kSessionExpired, "SESSION_EXPIRED", kAborted, kRestartStep,                                     \
    "no heartbeat within the session time-out, or the daemon restarted")                            \
  X(kStreamSuperseded, "STREAM_SUPERSEDED", kAborted, kNever,                                       \
    "another stream resumed this session")                                                          \
  X(kDeviceLost, "DEVICE_LOST", kAborted, kRestartStep,                                             \
    "the accelerator stopped answering; durable versions stay")                                     \
  X(kCancelled, "CANCELLED", kCancelled, kNever,                                                    \
    "the caller gave the request up")                                                               \
  /* Resources and time. */                                                                         \
  X(kMemoryShortfall, "MEMORY_SHORTFALL", kResourceExhausted, kNever,                               \
    "the bytes do not fit; required, available and what would fit are stated")                      \
  X(kStorageFull, "STORAGE_FULL", kResourceExhausted, kNever,                                       \
    "the file system has no room for the bytes to be written")                                      \
  X(kQuotaExceeded, "QUOTA_EXCEEDED", kResourceExhausted, kSameRequest,                             \
    "a count or byte quota of the session or server is used up")                                    \
  X(kOperationGap, "OPERATION_GAP", kDeadlineExceeded, kNever,                                      \
    "an earlier operation of the session did not arrive in time")                                   \
  X(kDeadlineExceeded, "DEADLINE_EXCEEDED", kDeadlineExceeded, kNever,                              \
    "the caller's deadline passed before the request was done")                                     \
  X(kDraining, "DRAINING", kUnavailable, kSameRequest,                                              \
    "the daemon is shutting down")                                                                  \
  X(kUnavailable, "UNAVAILABLE", kUnavailable, kSameRequest,                                        \
    "the daemon cannot be reached, or a transient fault of its input or output")                    \
  /* Trust. */                                                                                      \
  X(kChecksumMismatch, "CHECKSUM_MISMATCH", kDataLoss, kNever,                                      \
    "stored bytes are not the ones that were written; file and offset are named")                   \
  X(kCorruptFile, "CORRUPT_FILE", kDataLoss, kNever,                                                \
    "a file of the store is truncated or malformed")                                                \
  X(kUnauthenticated, "UNAUTHENTICATED", kUnauthenticated, kNever,                                  \
    "no valid token")                                                                               \
  X(kPermissionDenied, "PERMISSION_DENIED", kPermissionDenied, kNever,                              \
    "the caller may not do this")                                                                   \
  X(kNotSupported, "NOT_SUPPORTED", kUnimplemented, kNever,                                         \
    "an operation that this build does not have")                                                   \
  X(kInternal, "INTERNAL", kInternal, kNever,                                                       \
    "an invariant of the daemon is broken: report it")

enum class Reason {
#define PW_REASON_ENUM(id, name, code, retry, meaning) id,
  PW_REASONS(PW_REASON_ENUM)
#undef PW_REASON_ENUM
};

struct ReasonFacts {
  Reason reason;
  absl::string_view name;  // UPPER_SNAKE, as in google.rpc.ErrorInfo.reason
  absl::StatusCode code;
  Retry retry;
  absl::string_view meaning;
};

// Every reason, in declaration order.
absl::Span<const ReasonFacts> AllReasons();

const ReasonFacts& FactsOf(Reason reason);

// The reason of that name, if there is one.
std::optional<Reason> ReasonFromName(absl::string_view name);

}  // namespace planewise

#endif  // PLANEWISE_CORE_BASE_REASON_H_
