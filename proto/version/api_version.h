#ifndef PLANEWISE_PROTO_VERSION_API_VERSION_H_
#define PLANEWISE_PROTO_VERSION_API_VERSION_H_
// The version of the API (planewise.v1), and the handshake of two sides that may
// have different ones: the same major number, any minor.
//
// Not here: the version of the program, or of the store's files.

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace planewise {

// MAJOR.MINOR. A new minor adds; a new major may take away.
inline constexpr absl::string_view kApiVersion = "1.0";

// May a client of API version `client` use a server of version `server`?
// INVALID_ARGUMENT / INVALID_REQUEST if one is not MAJOR.MINOR,
// FAILED_PRECONDITION / CLIENT_TOO_OLD if the majors differ.
absl::Status CheckApiVersions(absl::string_view client, absl::string_view server);

}  // namespace planewise

#endif  // PLANEWISE_PROTO_VERSION_API_VERSION_H_
