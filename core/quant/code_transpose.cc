#include "core/quant/code_transpose.h"

// Squares of 8 by 8 bytes are transposed in eight 64-bit words, which any compiler
// turns into good code. They are visited in tiles, so that what is read and what is
// written are whole cache lines that fit the first-level cache together.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "core/numeric/float4_e2m1.h"

namespace planewise {
namespace {

constexpr int64_t kSquare = 8;  // bytes in a word
constexpr int64_t kTile = 64;   // bytes of a cache line

// Eight rows of eight bytes; byte j of a row is bits 8j to 8j + 7 of its word.
using Square = std::array<uint64_t, kSquare>;

// Swaps the upper right and the lower left quarter of each square of 2 * kHalf bytes.
template <size_t kHalf, uint64_t kLeft>
void SwapQuarters(Square& square) {
  for (size_t i = 0; i < square.size(); ++i) {
    if ((i & kHalf) != 0) continue;
    const uint64_t differing = ((square[i] >> (8 * kHalf)) ^ square[i + kHalf]) & kLeft;
    square[i] ^= differing << (8 * kHalf);
    square[i + kHalf] ^= differing;
  }
}

void Transpose(Square& square) {
  SwapQuarters<4, 0x00000000FFFFFFFF>(square);
  SwapQuarters<2, 0x0000FFFF0000FFFF>(square);
  SwapQuarters<1, 0x00FF00FF00FF00FF>(square);
}

uint64_t LoadWord(CodeRows from, int64_t row, int64_t byte) {
  uint64_t word;
  std::memcpy(&word, from.first + row * from.row_bytes + byte, sizeof(word));
  return word;
}

void StoreWord(uint64_t word, MutableCodeRows to, int64_t row, int64_t byte) {
  std::memcpy(to.first + row * to.row_bytes + byte, &word, sizeof(word));
}

// Calls function(row, column) for the corner of each step by step square inside
// [rows, columns], tile by tile.
template <typename Function>
void ForEachSquare(int64_t step, int64_t tile, int64_t rows, int64_t columns, Function function) {
  const int64_t row_end = rows / step * step;
  const int64_t column_end = columns / step * step;
  for (int64_t tile_row = 0; tile_row < row_end; tile_row += tile) {
    for (int64_t tile_column = 0; tile_column < column_end; tile_column += tile) {
      for (int64_t j = tile_column; j < std::min(tile_column + tile, column_end); j += step) {
        for (int64_t i = tile_row; i < std::min(tile_row + tile, row_end); i += step) {
          function(i, j);
        }
      }
    }
  }
}

}  // namespace

void TransposeBytes(CodeRows from, int64_t rows, int64_t columns, MutableCodeRows to) {
  ForEachSquare(kSquare, kTile, rows, columns, [&](int64_t i, int64_t j) {
    Square square;
    for (size_t k = 0; k < square.size(); ++k) {
      square[k] = LoadWord(from, i + static_cast<int64_t>(k), j);
    }
    Transpose(square);
    for (size_t k = 0; k < square.size(); ++k) {
      StoreWord(square[k], to, j + static_cast<int64_t>(k), i);
    }
  });
  const int64_t whole_rows = rows / kSquare * kSquare;
  const int64_t whole_columns = columns / kSquare * kSquare;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = i < whole_rows ? whole_columns : 0; j < columns; ++j) {
      to.first[j * to.row_bytes + i] = from.first[i * from.row_bytes + j];
    }
  }
}

void TransposePacked(CodeRows from, int64_t rows, int64_t columns, MutableCodeRows to) {
  constexpr int64_t kElements = 2 * kSquare;
  constexpr uint64_t kLowHalves = 0x0F0F0F0F0F0F0F0F;
  // Two rows make one of the elements of even columns and one of those of odd ones,
  // each byte a pair that lies together afterwards.
  ForEachSquare(kElements, 2 * kTile, rows, columns, [&](int64_t i, int64_t j) {
    Square even;
    Square odd;
    for (size_t k = 0; k < even.size(); ++k) {
      const int64_t row = i + 2 * static_cast<int64_t>(k);
      const uint64_t first = LoadWord(from, row, j / 2);
      const uint64_t second = LoadWord(from, row + 1, j / 2);
      even[k] = (first & kLowHalves) | (second & kLowHalves) << 4;
      odd[k] = ((first >> 4) & kLowHalves) | (second & ~kLowHalves);
    }
    Transpose(even);
    Transpose(odd);
    for (size_t k = 0; k < even.size(); ++k) {
      const int64_t row = j + 2 * static_cast<int64_t>(k);
      StoreWord(even[k], to, row, i / 2);
      StoreWord(odd[k], to, row + 1, i / 2);
    }
  });
  const int64_t whole_rows = rows / kElements * kElements;
  const int64_t whole_columns = columns / kElements * kElements;
  const auto element = [&](int64_t i, int64_t j) {
    return i < rows ? LoadPacked(from.first + i * from.row_bytes, j) : Float4E2M1{};
  };
  for (int64_t j = 0; j < columns; ++j) {
    uint8_t* row = to.first + j * to.row_bytes;
    for (int64_t i = j < whole_columns ? whole_rows : 0; i < rows; i += 2) {
      row[i / 2] = PackPair(element(i, j), element(i + 1, j));
    }
  }
}

}  // namespace planewise
