#ifndef PLANEWISE_CLIENTS_CLI_VERB_H_
#define PLANEWISE_CLIENTS_CLI_VERB_H_
// What every verb of the command line has: the shared flags, a way to run, a
// connection, and output as a table or JSON.
//
// Not here: the verbs (one file each), which exist (cli_main.cc).

#include <functional>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/progress_bar.h"
#include "clients/cpp/client.h"
#include "google/protobuf/message.h"

namespace planewise {

struct CommonFlags {
  std::string output = "table";
  std::string target;
  std::string token;
  bool verbose = false;

  bool json() const { return output == "json"; }
};

// A verb's flags live as long as `run`, which is called after parsing.
struct Verb {
  CLI::App* app = nullptr;
  std::function<absl::StatusOr<ExitCode>()> run;
};

// --output, and for verbs that talk to the daemon --target, --token, --verbose.
void AddOutputFlag(CLI::App& app, CommonFlags& common);
void AddConnectionFlags(CLI::App& app, CommonFlags& common);

// The daemon that the flags and the environment name. UNAVAILABLE soon if there
// is none: people wait for this.
absl::StatusOr<std::unique_ptr<Client>> Connect(const CommonFlags& common);

// Calls with a progress bar. The bar must outlive the call.
CallOptions WithProgressBar(ProgressBar& bar);

// Marks a change, so that a retry cannot make it twice; shown with --verbose.
std::string NewRequestId(const CommonFlags& common);

// The environment of this process.
const char* ProcessEnvironment(const char* name);

// A message as JSON with the field names of the .proto files, defaults printed.
std::string JsonText(const google::protobuf::Message& message);

// To stdout.
void Print(absl::string_view text);

// Flags that make no sense, alone or together: says why, and is the exit code for it.
ExitCode WrongCommandLine(const absl::Status& status, const CommonFlags& common);

// A failed call: the message and what is known of it on stderr, and with JSON output
// also {"error": google.rpc.Status} on stdout.
void PrintError(const absl::Status& status, const CommonFlags& common);

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CLI_VERB_H_
