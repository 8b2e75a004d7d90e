#ifndef PLANEWISE_TESTS_GOLDEN_GOLDEN_FILES_H_
#define PLANEWISE_TESTS_GOLDEN_GOLDEN_FILES_H_
// Access to the golden vectors: where they are, what the manifest says of each
// file, and their tensors. What they mean is in README.md beside them.

#include <cstdint>
#include <cstring>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/checkpoint/safetensors_reader.h"
#include "core/numeric/dtype.h"

namespace planewise {

struct GoldenTensorFacts {
  DType dtype = DType::kU8;
  std::vector<int64_t> shape;

  bool operator==(const GoldenTensorFacts&) const = default;
};
std::ostream& operator<<(std::ostream& out, const GoldenTensorFacts& facts);

// One entry of manifest.json.
struct GoldenFile {
  std::string name;
  std::string format;   // for example "mxfp8"
  std::string element;  // "e4m3", "e5m2", or empty
  bool power_of_two_scales = false;
  float epsilon = 0;
  int64_t size_bytes = 0;
  std::string sha256;
  std::map<std::string, GoldenTensorFacts> tensors;
};
std::ostream& operator<<(std::ostream& out, const GoldenFile& file);

// PLANEWISE_GOLDEN_DIR if it is set, else the directory of this file. Another
// directory has the same form: safetensors files and a manifest.json.
std::string GoldenDirectory();

// Every file that the manifest lists.
absl::StatusOr<std::vector<GoldenFile>> ReadGoldenManifest();

// The same for lists of test cases: none if the manifest cannot be read, which a test
// of golden_test.cc reports.
std::vector<GoldenFile> GoldenManifest();
std::vector<GoldenFile> GoldenFilesOf(absl::string_view format);

// A test's name: the file's, as far as GoogleTest allows.
std::string GoldenTestName(absl::string_view file);

// Of the whole file, in lower-case hexadecimal.
absl::StatusOr<std::string> Sha256OfGoldenFile(absl::string_view name);

absl::StatusOr<SafetensorsReader> OpenGoldenFile(absl::string_view name);

// All elements of a tensor, whose type must have the size of T.
template <typename T>
absl::StatusOr<std::vector<T>> ReadGoldenTensor(const SafetensorsReader& file,
                                                absl::string_view tensor) {
  absl::StatusOr<std::vector<std::byte>> bytes = file.ReadWhole(tensor);
  if (!bytes.ok()) return std::move(bytes).status();
  std::vector<T> elements(bytes->size() / sizeof(T));
  if (!bytes->empty()) std::memcpy(elements.data(), bytes->data(), bytes->size());
  return elements;
}

}  // namespace planewise

#endif  // PLANEWISE_TESTS_GOLDEN_GOLDEN_FILES_H_
