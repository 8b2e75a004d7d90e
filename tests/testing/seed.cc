#include "tests/testing/seed.h"

#include <cstdlib>
#include <iostream>
#include <random>

#include "absl/strings/numbers.h"

namespace planewise {
namespace {

uint64_t ReadSeed() {
  const char* text = std::getenv("PLANEWISE_SEED");
  if (text == nullptr || *text == '\0') {
    std::random_device device;
    return (uint64_t{device()} << 32) | device();
  }
  const std::optional<uint64_t> seed = ParseSeed(text);
  if (!seed) {
    std::cerr << "PLANEWISE_SEED=\"" << text << "\" is not an unsigned decimal number\n";
    std::exit(1);
  }
  return *seed;
}

}  // namespace

uint64_t TestSeed() {
  static const uint64_t seed = [] {
    const uint64_t value = ReadSeed();
    std::cout << "PLANEWISE_SEED=" << value << std::endl;
    return value;
  }();
  return seed;
}

std::optional<uint64_t> ParseSeed(absl::string_view text) {
  uint64_t seed = 0;
  if (!absl::SimpleAtoi(text, &seed)) return std::nullopt;
  return seed;
}

}  // namespace planewise
