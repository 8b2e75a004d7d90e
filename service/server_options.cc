#include "service/server_options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "proto/address/default_address.h"
#include "proto/version/api_version.h"
#include "service/server_settings.h"
#include "service/version.h"

namespace planewise {
namespace {

constexpr int kUsageError = 2;

constexpr char kDescription[] =
    "planewised owns the quantized weights of models and computes forward and backward for "
    "trainers.";
constexpr char kFooter[] =
    "Sizes need a unit: 8GiB is 8 * 2^30 bytes, 8GB is 8 * 10^9.\n"
    "Every setting can also be an environment variable (--memory-limit: PLANEWISE_MEMORY_LIMIT; "
    "lists separated by commas) or a line of the --config file (memory-limit = \"8GiB\", "
    "root = [\"/a\", \"/b\"]). A flag wins over the environment, the environment over the file.\n"
    "Exit codes: 0 after a drain, 1 if it cannot start or fails, 2 for a mistake in the settings.";

// A setting's texts and where they were given.
struct Given {
  std::vector<std::string> texts;
  std::string source;  // for messages
};
using GivenSettings = std::map<absl::string_view, Given>;

std::string EnvironmentName(absl::string_view setting) {
  return absl::StrCat("PLANEWISE_",
                      absl::AsciiStrToUpper(absl::StrReplaceAll(setting, {{"-", "_"}})));
}

void AddFromEnvironment(EnvironmentReader environment, GivenSettings& given) {
  for (const ServerSetting& setting : ServerSettings()) {
    const std::string name = EnvironmentName(setting.name);
    const std::optional<std::string> value = environment(name);
    if (!value) continue;
    Given from_environment{{*value}, name};
    if (setting.repeatable) from_environment.texts = absl::StrSplit(*value, ',');
    given.emplace(setting.name, std::move(from_environment));
  }
}

const ServerSetting* FindSetting(absl::string_view name) {
  for (const ServerSetting& setting : ServerSettings()) {
    if (setting.name == name) return &setting;
  }
  return nullptr;
}

absl::Status AddFromFile(const std::string& path, GivenSettings& given) {
  std::vector<CLI::ConfigItem> items;
  try {
    items = CLI::ConfigTOML().from_file(path);
  } catch (const CLI::Error& error) {
    return Error(Reason::kInvalidRequest, absl::StrCat("--config ", path, ": ", error.what()));
  }
  for (CLI::ConfigItem& item : items) {
    const ServerSetting* setting = FindSetting(item.fullname());
    if (setting == nullptr) {
      return Error(Reason::kInvalidRequest,
                   absl::StrCat("--config ", path, ": unknown key \"", item.fullname(),
                                "\"; keys are the flags of --help without dashes in front"));
    }
    if (item.inputs.empty() || (item.inputs.size() > 1 && !setting->repeatable)) {
      return Error(Reason::kInvalidRequest,
                   absl::StrCat("--config ", path, ": key \"", setting->name, "\" has ",
                                item.inputs.size(), " values; required: 1"));
    }
    given.emplace(setting->name, Given{std::move(item.inputs), absl::StrCat("--config ", path)});
  }
  return absl::OkStatus();
}

int64_t DefaultMemoryLimit() {
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE) / 5 * 4;
}

absl::StatusOr<ServerOptions> Apply(const GivenSettings& given) {
  ServerOptions options;
  options.memory_limit_bytes = DefaultMemoryLimit();
  options.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  PW_ASSIGN_OR_RETURN(ListenAddress address, ParseListenAddress(DefaultAddress()));
  options.listen.push_back(std::move(address));
  for (const ServerSetting& setting : ServerSettings()) {
    const auto found = given.find(setting.name);
    if (found == given.end()) continue;
    const absl::Status applied = setting.apply(found->second.texts, options);
    if (!applied.ok()) {
      return Annotate(applied, absl::StrCat("--", setting.name, " (", found->second.source, ")"));
    }
  }
  if (options.has_tcp() && options.token_file.empty()) {
    return Error(Reason::kInvalidRequest,
                 "--listen on TCP needs --token-file FILE: callers must present its token; the "
                 "file is made if it is missing");
  }
  if (!options.port_file.empty() && !options.has_tcp()) {
    return Error(Reason::kInvalidRequest,
                 "--port-file without a TCP address; add --listen 127.0.0.1:PORT");
  }
  return options;
}

ServerCommand Mistake(absl::string_view message) {
  return {std::nullopt, absl::StrCat("planewised: ", message, "\nTry planewised --help.\n"),
          kUsageError};
}

}  // namespace

bool ServerOptions::has_tcp() const {
  return std::any_of(listen.begin(), listen.end(), [](const ListenAddress& address) {
    return address.kind == ListenAddress::Kind::kTcp;
  });
}

std::map<std::string, std::string> ServerOptions::Settings() const {
  std::map<std::string, std::string> settings;
  for (const ServerSetting& setting : ServerSettings()) {
    settings.emplace(setting.name, setting.show(*this));
  }
  return settings;
}

std::optional<std::string> SystemEnvironment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

ServerCommand ParseServerCommand(int argc, const char* const* argv,
                                 EnvironmentReader environment) {
  CLI::App app(kDescription, "planewised");
  app.footer(kFooter);
  std::string config_path;
  bool validate_only = false;
  app.add_option("--config", config_path, "Read settings from this TOML file")
      ->type_name("FILE");
  app.add_flag("--validate-config", validate_only,
               "Check the settings, print those in effect, and exit");
  app.set_version_flag("--version", absl::StrCat("planewised ", kServerVersion, " (API ",
                                                 kApiVersion, ")"));
  std::map<absl::string_view, std::vector<std::string>> flags;
  for (const ServerSetting& setting : ServerSettings()) {
    CLI::Option* option =
        app.add_option(absl::StrCat("--", setting.name), flags[setting.name],
                       std::string(setting.help));
    option->type_name(std::string(setting.value))->allow_extra_args(false);
    if (setting.repeatable) option->take_all();
    if (!setting.repeatable) option->expected(1);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return {std::nullopt, app.help(), 0};
  } catch (const CLI::CallForVersion& version) {
    return {std::nullopt, absl::StrCat(version.what(), "\n"), 0};
  } catch (const CLI::Error& error) {
    return Mistake(error.what());
  }

  // The first source that gives a setting wins.
  GivenSettings given;
  for (const auto& [name, texts] : flags) {
    if (!texts.empty()) given.emplace(name, Given{texts, "command line"});
  }
  AddFromEnvironment(environment, given);
  if (!config_path.empty()) {
    const absl::Status added = AddFromFile(config_path, given);
    if (!added.ok()) return Mistake(added.message());
  }
  absl::StatusOr<ServerOptions> options = Apply(given);
  if (!options.ok()) return Mistake(options.status().message());
  if (!validate_only) return {*std::move(options), "", 0};
  std::string text;
  for (const auto& [name, value] : options->Settings()) {
    absl::StrAppend(&text, name, " = ", value, "\n");
  }
  return {std::nullopt, text, 0};
}

}  // namespace planewise
