#ifndef PLANEWISE_CLIENTS_C_C_STRUCT_H_
#define PLANEWISE_CLIENTS_C_C_STRUCT_H_
// Structs that cross the C interface carry their size, so that callers of an
// older header work with a newer library: fields that they do not know are 0.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace planewise {

// INVALID_ARGUMENT / INVALID_REQUEST: no struct, or one that is newer than the library.
template <typename T>
absl::Status CheckCStruct(const T* given, absl::string_view name) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (given == nullptr) {
    return Error(Reason::kInvalidRequest, absl::StrCat(name, ": NULL, required a struct"));
  }
  if (given->struct_size < sizeof(size_t) || given->struct_size > sizeof(T)) {
    return Error(Reason::kInvalidRequest,
                 absl::StrCat(name, ": struct_size ", given->struct_size, ", required at most ",
                              sizeof(T), "; set it to sizeof the struct of this library's header"));
  }
  return absl::OkStatus();
}

// What CheckCStruct accepted, in full.
template <typename T>
T ReadCStruct(const T* given) {
  T full{};
  std::memcpy(&full, given, std::min(given->struct_size, sizeof(T)));
  return full;
}

// As much of `full` as the caller knows.
template <typename T>
void WriteCStruct(T full, T* given) {
  full.struct_size = given->struct_size;
  std::memcpy(given, &full, std::min(given->struct_size, sizeof(T)));
}

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_C_C_STRUCT_H_
