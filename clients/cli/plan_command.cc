#include "clients/cli/plan_command.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/recipe_flags.h"
#include "core/base/byte_size.h"
#include "core/base/error.h"
#include "core/base/posix_file_system.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/hf_directory.h"
#include "planner/hf_config_reader.h"
#include "planner/inventory_match.h"
#include "planner/memory_model.h"
#include "planner/memory_report.h"
#include "planner/plan_json.h"
#include "planner/tensor_inventory.h"
#include "planner/what_if.h"

namespace planewise {
namespace {

struct PlanFlags {
  std::string model;
  std::string memory;  // "": none named
  int64_t sessions = 0;
  int64_t tokens = 0;
  bool layers = false;
  bool what_if = false;
  RecipeFlags recipe;
  PlaneFlags planes;
};

absl::StatusOr<std::string> ReadText(absl::string_view path) {
  PW_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file,
                      PosixFileSystem().OpenForRead(path));
  PW_ASSIGN_OR_RETURN(const int64_t size_bytes, file->SizeBytes());
  if (size_bytes > kConfigBytesMax) {
    return Error(Reason::kInvalidCheckpoint,
                 absl::StrCat(path, ": ", size_bytes, " bytes; a config.json has at most ",
                              kConfigBytesMax));
  }
  std::string text(static_cast<size_t>(size_bytes), '\0');
  PW_RETURN_IF_ERROR(file->Read(0, {reinterpret_cast<std::byte*>(text.data()), text.size()}));
  return text;
}

// From a directory with weights: what config.json says and the headers confirm. From
// config.json alone: what it says.
absl::StatusOr<TensorInventory> InventoryOf(const std::string& path) {
  PW_ASSIGN_OR_RETURN(const FileInfo info, PosixFileSystem().Stat(path));
  if (!info.is_directory) {
    PW_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
    PW_ASSIGN_OR_RETURN(const ModelConfig config, ReadHfConfig(text));
    return BuildInventory(config);
  }
  PW_ASSIGN_OR_RETURN(const HfDirectory directory,
                      HfDirectory::Open(PosixFileSystem(), path, {}));
  PW_ASSIGN_OR_RETURN(const ModelConfig config, ReadHfConfig(directory.config_json()));
  PW_ASSIGN_OR_RETURN(const TensorInventory inventory, BuildInventory(config));
  std::vector<SourceTensor> headers;
  for (const HfTensor& tensor : directory.tensors()) {
    headers.push_back({tensor.name, tensor.dtype, tensor.shape});
  }
  PW_ASSIGN_OR_RETURN(const InventoryMatch match, MatchInventory(inventory, headers));
  return match.inventory;
}

absl::StatusOr<PlanOptions> OptionsOf(const PlanFlags& flags) {
  PlanOptions options;
  PW_ASSIGN_OR_RETURN(options.recipe, flags.recipe.Resolve(ProcessEnvironment));
  PW_ASSIGN_OR_RETURN(options.policy, flags.planes.policy());
  PW_ASSIGN_OR_RETURN(options.future_modes, flags.planes.future_modes());
  options.backward_enabled = flags.planes.backward_enabled();
  options.trainable = flags.planes.trainable();
  options.load.sessions = flags.sessions;
  options.load.tokens = flags.tokens;
  return options;
}

absl::StatusOr<std::optional<int64_t>> MemoryOf(const PlanFlags& flags) {
  if (flags.memory.empty()) return std::nullopt;
  return ParseByteSize(flags.memory);
}

absl::StatusOr<ExitCode> Run(const PlanFlags& flags, const CommonFlags& common) {
  const absl::StatusOr<PlanOptions> options = OptionsOf(flags);
  if (!options.ok()) return WrongCommandLine(options.status(), common);
  const absl::StatusOr<std::optional<int64_t>> limit_bytes = MemoryOf(flags);
  if (!limit_bytes.ok()) return WrongCommandLine(limit_bytes.status(), common);
  PW_ASSIGN_OR_RETURN(const TensorInventory inventory, InventoryOf(flags.model));
  PW_ASSIGN_OR_RETURN(const ModelPlan plan, PlanModel(inventory, *options));

  PlanJsonParts parts;
  if (limit_bytes->has_value()) {
    PW_ASSIGN_OR_RETURN(parts.fit, CheckFit(inventory, *options, **limit_bytes));
  }
  if (flags.what_if) parts.what_if = WhatIf(inventory, *options);

  if (common.json()) {
    Print(PlanJson(plan, parts));
  } else {
    Print(PlanTable(plan));
    if (flags.layers) Print(absl::StrCat("\n", LayerTable(plan)));
    if (flags.what_if) Print(absl::StrCat("\n", WhatIfTable(parts.what_if)));
    if (parts.fit.has_value()) Print(absl::StrCat("\n", FitText(*parts.fit)));
  }
  return parts.fit.has_value() && !parts.fit->fits ? ExitCode::kNegative : ExitCode::kOk;
}

}  // namespace

Verb AddPlanCommand(CLI::App& root, CommonFlags& common) {
  CLI::App* const app = root.add_subcommand(
      "plan", "Plan a model to the byte, before anything is loaded (needs no daemon)");
  app->footer(
      "Example: planewise plan ./MiniLM --backward-override dequantized --what-if --memory 1GiB\n"
      "Exit code 1: it does not fit into --memory; the shortfall and what would fit are shown.");
  const auto flags = std::make_shared<PlanFlags>();
  app->add_option("model", flags->model,
                  "Hugging Face directory, or a config.json on its own")
      ->required();
  flags->recipe.AddTo(*app, "mxfp8");
  flags->planes.AddTo(*app);
  app->add_option("--sessions", flags->sessions, "Trainers at once")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app->add_option("--tokens", flags->tokens,
                  "Tokens that a session keeps between forward and backward")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app->add_option("--memory", flags->memory, "Does it fit? A size with its unit, for example 8GiB");
  app->add_flag("--layers", flags->layers, "One line per layer");
  app->add_flag("--what-if", flags->what_if, "Every recipe, override and policy side by side");
  AddOutputFlag(*app, common);
  return {app, [flags, &common] { return Run(*flags, common); }};
}

}  // namespace planewise
