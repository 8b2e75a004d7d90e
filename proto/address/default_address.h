#ifndef PLANEWISE_PROTO_ADDRESS_DEFAULT_ADDRESS_H_
#define PLANEWISE_PROTO_ADDRESS_DEFAULT_ADDRESS_H_
// Where the daemon listens and clients connect when nobody says otherwise: the
// one place that both take it from.
//
// Not here: making the socket and its folder (service/), flags and environment
// variables that name another address.

#include <string>

#include "absl/strings/string_view.h"

namespace planewise {

// unix:// and the absolute path of planewise.sock: in the folder planewise of
// `runtime_dir` (XDG_RUNTIME_DIR; empty if not set), else in
// /tmp/planewise-USER_ID. The folder is the daemon's to make, with mode 0700,
// and to refuse if another user owns it.
std::string DefaultAddress(absl::string_view runtime_dir, unsigned user_id);

// The same for this process.
std::string DefaultAddress();

}  // namespace planewise

#endif  // PLANEWISE_PROTO_ADDRESS_DEFAULT_ADDRESS_H_
