#include "clients/cli/get_command.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "clients/cli/weight_file.h"
#include "core/base/posix_file_system.h"
#include "core/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "planner/memory_report.h"

namespace planewise {
namespace {

struct GetFlags {
  std::string path;
  v1::ReadWeightsRequest request;
};

absl::StatusOr<ExitCode> Run(const GetFlags& flags, const CommonFlags& common) {
  PW_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Connect(common));
  PW_ASSIGN_OR_RETURN(const std::unique_ptr<WeightFile> file,
                      WeightFile::Create(PosixFileSystem(), flags.path));
  PW_RETURN_IF_ERROR(client->ReadWeights(flags.request, *file));
  PW_ASSIGN_OR_RETURN(const int64_t file_bytes, file->Finish());
  if (common.json()) {
    const nlohmann::ordered_json result = {{"path", flags.path},
                                           {"file_bytes", file_bytes},
                                           {"tensor_count", file->tensor_count()}};
    Print(absl::StrCat(result.dump(2), "\n"));
  } else {
    Print(absl::StrCat(file->tensor_count(), " tensors, ", FormatBytes(file_bytes), " in ",
                       flags.path, "\n"));
  }
  return ExitCode::kOk;
}

const std::map<std::string, v1::Plane>& PlanesByName() {
  static const auto* const planes =
      new std::map<std::string, v1::Plane>{{"row", v1::PLANE_ROW},
                                           {"column", v1::PLANE_COLUMN},
                                           {"high_precision", v1::PLANE_HIGH_PRECISION}};
  return *planes;
}

const std::map<std::string, v1::DataType>& TypesByName() {
  static const auto* const types = new std::map<std::string, v1::DataType>{
      {"F32", v1::DATA_TYPE_F32}, {"BF16", v1::DATA_TYPE_BF16}, {"F16", v1::DATA_TYPE_F16}};
  return *types;
}

}  // namespace

Verb AddGetCommand(CLI::App& root, CommonFlags& common) {
  CLI::App* const app =
      root.add_subcommand("get", "Write weights of a hosted model to a safetensors file");
  app->footer(
      "Example: planewise get minilm row.safetensors --plane row\n"
      "         planewise get minilm w.safetensors --dequantize F32 --weight "
      "encoder.layer.0.output.dense.weight");
  const auto flags = std::make_shared<GetFlags>();
  v1::ReadWeightsRequest* const request = &flags->request;
  app->add_option_function<std::string>(
         "name", [request](const std::string& name) { request->set_name(name); }, "The model")
      ->required();
  app->add_option("file", flags->path, "File to write; it must not exist")->required();
  app->add_option_function<std::vector<std::string>>(
      "--weight",
      [request](const std::vector<std::string>& names) {
        for (const std::string& name : names) request->add_weights(name);
      },
      "A weight (repeatable; default: all)");
  CLI::Option_group* const what = app->add_option_group("what", "One of:");
  what->add_option_function<std::string>(
          "--plane",
          [request](const std::string& name) { request->set_plane(PlanesByName().at(name)); },
          "Stored bytes of a plane: row, column or high_precision")
      ->check(CLI::IsMember(PlanesByName()));
  what->add_option_function<std::string>(
          "--dequantize",
          [request](const std::string& name) {
            request->set_dequantize_to(TypesByName().at(name));
          },
          "Values in F32, BF16 or F16")
      ->check(CLI::IsMember(TypesByName()));
  what->require_option(1);
  app->add_option_function<uint64_t>(
      "--version", [request](const uint64_t& version) { request->set_version(version); },
      "A version (default: the newest)");
  AddConnectionFlags(*app, common);
  return {app, [flags, &common] { return Run(*flags, common); }};
}

}  // namespace planewise
