#include "tests/golden/golden_files.h"

#include <cstdlib>
#include <iostream>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/base/file_system.h"
#include "core/base/posix_file_system.h"
#include "core/base/status_macros.h"
#include "core/base/strict_json.h"
#include "openssl/evp.h"

namespace planewise {
namespace {

constexpr int64_t kFileBytesMax = 64 << 20;
constexpr int kManifestDepthMax = 8;

// The manifest names types as Python does.
std::optional<DType> DTypeOfPythonName(absl::string_view name) {
  if (name == "float32") return DType::kF32;
  if (name == "bfloat16") return DType::kBF16;
  if (name == "uint16") return DType::kU16;
  if (name == "uint8") return DType::kU8;
  return std::nullopt;
}

absl::StatusOr<GoldenFile> ParseEntry(const nlohmann::json& entry) {
  GoldenFile file;
  file.name = entry.at("file").get<std::string>();
  file.format = entry.at("format").get<std::string>();
  file.element = entry.value("element", "");
  file.power_of_two_scales = entry.value("force_pow2_scales", false);
  file.epsilon = entry.value("eps", 0.0f);
  file.size_bytes = entry.at("bytes").get<int64_t>();
  file.sha256 = entry.at("sha256").get<std::string>();
  for (const auto& [name, facts] : entry.at("tensors").items()) {
    const std::string type = facts.at(0).get<std::string>();
    const std::optional<DType> dtype = DTypeOfPythonName(type);
    if (!dtype) {
      return absl::InvalidArgumentError(file.name + ": tensor type " + type + " is not known");
    }
    file.tensors[name] = {*dtype, facts.at(1).get<std::vector<int64_t>>()};
  }
  return file;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const GoldenTensorFacts& facts) {
  return out << facts.dtype << " [" << absl::StrJoin(facts.shape, ", ") << "]";
}

std::ostream& operator<<(std::ostream& out, const GoldenFile& file) { return out << file.name; }

std::string GoldenDirectory() {
  const char* directory = std::getenv("PLANEWISE_GOLDEN_DIR");
  return directory != nullptr && *directory != '\0' ? directory : "tests/golden";
}

absl::StatusOr<std::vector<GoldenFile>> ReadGoldenManifest() {
  const std::string path = JoinPath(GoldenDirectory(), "manifest.json");
  PW_ASSIGN_OR_RETURN(const std::string text,
                      ReadWholeFile(PosixFileSystem(), path, kFileBytesMax));
  PW_ASSIGN_OR_RETURN(const nlohmann::json manifest,
                      ParseStrictJson(text, kManifestDepthMax, path));
  std::vector<GoldenFile> files;
  try {
    for (const nlohmann::json& entry : manifest.at("files")) {
      PW_ASSIGN_OR_RETURN(GoldenFile file, ParseEntry(entry));
      files.push_back(std::move(file));
    }
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(path + ": " + error.what());
  }
  return files;
}

std::vector<GoldenFile> GoldenManifest() {
  absl::StatusOr<std::vector<GoldenFile>> files = ReadGoldenManifest();
  if (files.ok()) return *std::move(files);
  std::cerr << files.status() << std::endl;
  return {};
}

std::vector<GoldenFile> GoldenFilesOf(absl::string_view format) {
  std::vector<GoldenFile> selected;
  for (const GoldenFile& file : GoldenManifest()) {
    if (file.format == format) selected.push_back(file);
  }
  return selected;
}

std::string GoldenTestName(absl::string_view file) {
  return absl::StrReplaceAll(file, {{".safetensors", ""}, {"-", "_"}, {".", "_"}});
}

absl::StatusOr<std::string> Sha256OfGoldenFile(absl::string_view name) {
  PW_ASSIGN_OR_RETURN(
      const std::string bytes,
      ReadWholeFile(PosixFileSystem(), JoinPath(GoldenDirectory(), name), kFileBytesMax));
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int digest_bytes = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest, &digest_bytes, EVP_sha256(), nullptr) != 1) {
    return absl::InternalError("OpenSSL refused to compute a SHA-256");
  }
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest), digest_bytes));
}

absl::StatusOr<SafetensorsReader> OpenGoldenFile(absl::string_view name) {
  return SafetensorsReader::Open(PosixFileSystem(), JoinPath(GoldenDirectory(), name));
}

}  // namespace planewise
