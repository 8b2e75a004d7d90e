#include "clients/cli/verb.h"

#include <cstdio>
#include <cstdlib>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/error.h"
#include "google/protobuf/util/json_util.h"
// StatusToProto's details are printed by type, so their descriptors must be linked.
#include "google/rpc/error_details.pb.h"
#include "proto/status/status_codec.h"

namespace planewise {
namespace {

// How long a person waits for a daemon that is not there.
constexpr absl::Duration kConnectTimeout = absl::Seconds(3);

google::protobuf::util::JsonPrintOptions JsonOptions() {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  return options;
}

}  // namespace

void AddOutputFlag(CLI::App& app, CommonFlags& common) {
  app.add_option("-o,--output", common.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
}

void AddConnectionFlags(CLI::App& app, CommonFlags& common) {
  AddOutputFlag(app, common);
  app.add_option("--target", common.target,
                 "Daemon: unix:///PATH or HOST:PORT (default: PLANEWISE_TARGET, else the "
                 "daemon's default socket)");
  app.add_option("--token", common.token, "Token for TCP (default: PLANEWISE_TOKEN)");
  app.add_flag("--verbose", common.verbose, "Show request ids");
}

absl::StatusOr<std::unique_ptr<Client>> Connect(const CommonFlags& common) {
  Client::Options options = Client::DefaultOptions();
  if (!common.target.empty()) options.target = common.target;
  if (!common.token.empty()) options.token = common.token;
  options.name = "planewise-cli";
  options.retry.give_up_after = kConnectTimeout;
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(options);
  if (client.ok() && !(*client)->version_warning().empty()) {
    absl::FPrintF(stderr, "warning: %s\n", (*client)->version_warning());
  }
  return client;
}

CallOptions WithProgressBar(ProgressBar& bar) {
  CallOptions options;
  options.progress = [&bar](const v1::Progress& progress) {
    bar.Show(progress.stage(), progress.object(), progress.done_bytes(), progress.total_bytes());
    return true;
  };
  return options;
}

std::string NewRequestId(const CommonFlags& common) {
  std::random_device random;
  const std::string id = absl::StrFormat("%08x%08x", random(), random());
  if (common.verbose) absl::FPrintF(stderr, "request id: %s\n", id);
  return id;
}

const char* ProcessEnvironment(const char* name) { return std::getenv(name); }

std::string JsonText(const google::protobuf::Message& message) {
  std::string text;
  // Fails only for an Any of an unknown type, which our messages do not hold.
  (void)google::protobuf::util::MessageToJsonString(message, &text, JsonOptions());
  return text;
}

void Print(absl::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

ExitCode WrongCommandLine(const absl::Status& status, const CommonFlags& common) {
  PrintError(status, common);
  return ExitCode::kUsage;
}

void PrintError(const absl::Status& status, const CommonFlags& common) {
  const std::optional<ErrorDetails> details = DetailsOf(status);
  const absl::string_view reason =
      FactsOf(details.has_value() ? details->reason : DefaultReason(status.code())).name;
  absl::FPrintF(stderr, "error: %s\n  %s / %s\n", status.message(),
                absl::StatusCodeToString(status.code()), reason);
  if (details.has_value()) {
    for (const Violation& violation : details->violations) {
      absl::FPrintF(stderr, "  %s: %s\n", violation.subject, violation.description);
    }
    if (common.verbose) {
      for (const auto& [key, value] : details->metadata) {
        absl::FPrintF(stderr, "  %s = %s\n", key, value);
      }
    }
  }
  if (common.json()) {
    const google::rpc::Status proto = StatusToProto(status);
    Print(absl::StrCat("{\"error\": ", JsonText(proto), "}\n"));
  }
}

}  // namespace planewise
