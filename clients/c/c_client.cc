#include "clients/c/c_client.h"

#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/c/c_error.h"
#include "clients/c/c_struct.h"
#include "clients/c/control_calls.h"
#include "clients/c/message_json.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "proto/address/default_address.h"
#include "proto/version/api_version.h"

namespace planewise {
namespace {

absl::string_view OrEmpty(const char* text) { return text != nullptr ? text : ""; }

char* NewCString(const std::string& text) {
  char* const copy = new char[text.size() + 1];
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

absl::StatusOr<std::unique_ptr<Client>> Connect(const planewise_client_options* given) {
  Client::Options options = Client::DefaultOptions();
  if (given != nullptr) {
    PW_RETURN_IF_ERROR(CheckCStruct(given, "planewise_client_options"));
    const planewise_client_options set = ReadCStruct(given);
    if (set.target != nullptr) options.target = set.target;
    if (set.token != nullptr) options.token = set.token;
    if (set.client_name != nullptr) options.name = set.client_name;
    if (set.connect_timeout_ms != 0) {
      options.retry.give_up_after = absl::Milliseconds(set.connect_timeout_ms);
    }
  }
  return Client::Connect(std::move(options));
}

// Gives each tensor the memory that the C caller's callback names.
class CallbackSink final : public WeightSink {
 public:
  CallbackSink(planewise_place_callback place, void* user_data)
      : place_(place), user_data_(user_data) {}

  absl::StatusOr<absl::Span<char>> Begin(const v1::ReadTensorHeader& header) override {
    planewise_tensor_header tensor{};
    tensor.weight = header.weight().c_str();
    tensor.version = header.version();
    tensor.plane = header.plane();
    tensor.part = header.part();
    tensor.data_type = header.spec().data_type();
    tensor.shape = header.spec().shape().data();
    tensor.rank = header.spec().shape_size();
    tensor.size_bytes = header.size_bytes();
    void* const memory = place_(user_data_, &tensor);
    if (memory == nullptr && header.size_bytes() > 0) {
      return Error(Reason::kCancelled,
                   absl::StrCat("the caller gave no memory for weight \"", header.weight(), "\""));
    }
    return absl::MakeSpan(static_cast<char*>(memory), header.size_bytes());
  }

  absl::Status End(const v1::ReadTensorHeader&) override { return absl::OkStatus(); }

 private:
  const planewise_place_callback place_;
  void* const user_data_;
};

absl::Status ReadWeights(Client& client, absl::string_view request_json,
                         planewise_place_callback place, void* user_data) {
  v1::ReadWeightsRequest request;
  PW_RETURN_IF_ERROR(FromJson(request_json, request));
  CallbackSink sink(place, user_data);
  return client.ReadWeights(request, sink);
}

}  // namespace
}  // namespace planewise

using planewise::ToCError;

const char* planewise_api_version(void) { return planewise::kApiVersion.data(); }

void planewise_string_free(char* string) { delete[] string; }

const char* planewise_default_target(void) {
  static const std::string* const target = new std::string(planewise::DefaultAddress());
  return target->c_str();
}

planewise_error* planewise_client_connect(const planewise_client_options* options,
                                          planewise_client** client) {
  auto connected = planewise::Connect(options);
  if (!connected.ok()) return ToCError(connected.status());
  *client = new planewise_client{*std::move(connected)};
  return nullptr;
}

const char* planewise_client_target(const planewise_client* client) {
  return client->client->target().c_str();
}

const char* planewise_client_warning(const planewise_client* client) {
  return client->client->version_warning().c_str();
}

void planewise_client_free(planewise_client* client) { delete client; }

planewise_error* planewise_client_call(planewise_client* client, const char* method,
                                       const char* request, int64_t timeout_ms,
                                       planewise_progress_callback progress, void* user_data,
                                       char** response) {
  planewise::CallOptions options;
  if (timeout_ms != 0) options.timeout = absl::Milliseconds(timeout_ms);
  if (progress != nullptr) {
    options.progress = [progress, user_data](const planewise::v1::Progress& message) {
      return progress(user_data, planewise::ToJson(message).c_str()) == 0;
    };
  }
  const absl::StatusOr<std::string> json = planewise::ControlCall(
      *client->client, planewise::OrEmpty(method), planewise::OrEmpty(request), options);
  if (!json.ok()) return ToCError(json.status());
  *response = planewise::NewCString(*json);
  return nullptr;
}

planewise_error* planewise_client_read_weights(planewise_client* client, const char* request,
                                               planewise_place_callback place, void* user_data) {
  return ToCError(
      planewise::ReadWeights(*client->client, planewise::OrEmpty(request), place, user_data));
}
