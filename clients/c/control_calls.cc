#include "clients/c/control_calls.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/c/message_json.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "planewise/v1/models.pb.h"
#include "planewise/v1/server.pb.h"

namespace planewise {
namespace {

template <typename Request, typename Call>
absl::StatusOr<std::string> InJson(absl::string_view json, const Call& call) {
  Request request;
  if (!json.empty()) PW_RETURN_IF_ERROR(FromJson(json, request));
  PW_ASSIGN_OR_RETURN(const auto response, call(request));
  return ToJson(response);
}

struct Method {
  absl::string_view name;
  absl::StatusOr<std::string> (*call)(Client&, absl::string_view json, const CallOptions&);
};

// Every control call takes a request message but these two.
#define PW_METHOD(name)                                                              \
  {                                                                                  \
    #name, [](Client& client, absl::string_view json, const CallOptions& options) {  \
      return InJson<v1::name##Request>(                                              \
          json, [&](const auto& request) { return client.name(request, options); }); \
    }                                                                                \
  }
#define PW_METHOD_WITHOUT_REQUEST(name)                                                          \
  {                                                                                              \
    #name, [](Client& client, absl::string_view json, const CallOptions& options) {              \
      return InJson<v1::name##Request>(json, [&](const auto&) { return client.name(options); }); \
    }                                                                                            \
  }

const Method kMethods[] = {
    PW_METHOD_WITHOUT_REQUEST(GetCapabilities),
    PW_METHOD_WITHOUT_REQUEST(GetServerConfig),
    PW_METHOD(CreateModel),
    PW_METHOD(GetModel),
    PW_METHOD(ListModels),
    PW_METHOD(DeleteModel),
    PW_METHOD(ValidateModeSwitch),
    PW_METHOD(SwitchMode),
    PW_METHOD(SaveModel),
    PW_METHOD(VerifyModel),
};

#undef PW_METHOD
#undef PW_METHOD_WITHOUT_REQUEST

}  // namespace

absl::StatusOr<std::string> ControlCall(Client& client, absl::string_view method,
                                        absl::string_view request, const CallOptions& options) {
  std::string known;
  for (const Method& candidate : kMethods) {
    if (candidate.name == method) return candidate.call(client, request, options);
    absl::StrAppend(&known, known.empty() ? "" : ", ", candidate.name);
  }
  return Error(Reason::kInvalidRequest,
               absl::StrCat("method \"", method, "\": not a control call; those are ", known));
}

}  // namespace planewise
