// Damage done to a sound HDF5 file through HDF5 itself, as the fuzzer's bytes say: objects and attributes deleted,
// replaced by others of any type and shape, filled with any bytes. The file stays one that HDF5 reads, so that what is
// tested is our reader: flipping bytes on disk finds faults of libhdf5 1.10 within seconds (see docs/building.md).
#pragma once

#include <hdf5.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::fuzz {

class Hdf5Damage {
 public:
  Hdf5Damage(const std::uint8_t* data, std::size_t size) : next_(data), end_(data + size) {}

  // A byte of the input, 0 when it is used up.
  unsigned byte() { return next_ == end_ ? 0 : *next_++; }
  unsigned below(std::size_t count) { return count == 0 ? 0 : static_cast<unsigned>(byte() % count); }

  void apply(const std::filesystem::path& path) {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    file_ = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    for (int i = 0; i < 8 && next_ != end_; ++i) operation();
    H5Fclose(file_);
  }

 private:
  void operation() {
    std::vector<std::string> objects;
    H5Ovisit2(
        file_, H5_INDEX_NAME, H5_ITER_INC,
        // Of its third argument nothing is read: H5O_info_t in HDF5 1.10 and H5O_info1_t since 1.12, where the first is
        // another.
        [](hid_t, const char* name, const auto*, void* list) -> herr_t {
          static_cast<std::vector<std::string>*>(list)->emplace_back(name);
          return 0;
        },
        &objects, H5O_INFO_BASIC);
    if (objects.empty()) return;
    const std::string object = objects[below(objects.size())];
    const unsigned what = below(6);
    if (what < 2) return attribute(object, what == 0);
    if (object == ".") return;
    if (what == 2) {
      H5Ldelete(file_, object.c_str(), H5P_DEFAULT);
    } else if (what == 3) {  // a dataset of another type and shape
      H5Ldelete(file_, object.c_str(), H5P_DEFAULT);
      const hid_t kind = type(), shape = space(), properties = H5Pcreate(H5P_DATASET_CREATE);
      const int rank = H5Sget_simple_extent_ndims(shape);
      if (huge_) {  // terabytes claimed, nothing stored
        const hsize_t chunk[3] = {16, 1, 1};
        H5Pset_chunk(properties, rank, chunk);
      }
      const hid_t dataset = H5Dcreate2(file_, object.c_str(), kind, shape, H5P_DEFAULT, properties, H5P_DEFAULT);
      if (!huge_)
        fill(kind, shape, [&](const void* bytes) { H5Dwrite(dataset, kind, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes); });
      H5Dclose(dataset), H5Pclose(properties), H5Sclose(shape), H5Tclose(kind);
    } else if (what == 4) {  // other numbers
      const hid_t dataset = H5Dopen2(file_, object.c_str(), H5P_DEFAULT);
      if (dataset < 0) return;
      const hid_t kind = H5Dget_type(dataset), shape = H5Dget_space(dataset);
      if (H5Tis_variable_str(kind) == 0) {
        fill(kind, shape, [&](const void* bytes) { H5Dwrite(dataset, kind, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes); });
      }
      H5Dclose(dataset), H5Sclose(shape), H5Tclose(kind);
    } else {  // a link to another object, or to nothing
      const std::string target = "/" + objects[below(objects.size())] + (byte() % 4 == 0 ? "x" : "");
      H5Ldelete(file_, object.c_str(), H5P_DEFAULT);
      H5Lcreate_soft(target.c_str(), file_, object.c_str(), H5P_DEFAULT, H5P_DEFAULT);
    }
  }

  void attribute(const std::string& object, bool remove) {
    std::vector<std::string> names;
    const hid_t id = H5Oopen(file_, object.c_str(), H5P_DEFAULT);
    if (id < 0) return;
    hsize_t position = 0;
    H5Aiterate2(
        id, H5_INDEX_NAME, H5_ITER_INC, &position,
        [](hid_t, const char* name, const H5A_info_t*, void* list) -> herr_t {
          static_cast<std::vector<std::string>*>(list)->emplace_back(name);
          return 0;
        },
        &names);
    if (!names.empty()) {
      const std::string name = names[below(names.size())];
      H5Adelete(id, name.c_str());
      if (!remove) {
        const hid_t kind = type(), shape = space();
        if (!huge_) {
          const hid_t made = H5Acreate2(id, name.c_str(), kind, shape, H5P_DEFAULT, H5P_DEFAULT);
          fill(kind, shape, [&](const void* bytes) { H5Awrite(made, kind, bytes); });
          H5Aclose(made);
        }
        H5Sclose(shape), H5Tclose(kind);
      }
    }
    H5Oclose(id);
  }

  hid_t type() {
    const std::array<hid_t, 9> plain = {H5T_STD_U8LE,   H5T_STD_I32LE,  H5T_STD_I64LE,   H5T_STD_U64BE, H5T_IEEE_F32LE,
                                        H5T_IEEE_F64LE, H5T_IEEE_F32BE, H5T_STD_REF_OBJ, H5T_STD_B8LE};
    const unsigned choice = below(plain.size() + 3);
    if (choice < plain.size()) return H5Tcopy(plain[choice]);
    if (choice == plain.size()) {
      const hid_t compound = H5Tcreate(H5T_COMPOUND, 8);
      H5Tinsert(compound, "x", 0, H5T_IEEE_F64LE);
      return compound;
    }
    const hid_t text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, choice == plain.size() + 1 ? H5T_VARIABLE : 1 + below(9));
    return text;
  }

  hid_t space() {
    huge_ = false;
    const unsigned rank = below(5);
    if (rank == 0) return H5Screate(H5S_SCALAR);
    if (rank == 4) return H5Screate(H5S_NULL);
    hsize_t extent[3];
    for (unsigned i = 0; i < rank; ++i) {
      const unsigned size = byte();
      if (size >= 250) huge_ = true;
      extent[i] = size >= 250 ? hsize_t{1} << (size - 220) : size % 7;
    }
    for (unsigned i = 0; huge_ && i < rank; ++i) extent[i] = std::max<hsize_t>(extent[i], 1);
    return H5Screate_simple(static_cast<int>(rank), extent, nullptr);
  }

  template <class Write>
  void fill(hid_t kind, hid_t shape, const Write& write) {
    const auto count = static_cast<std::size_t>(std::max<hssize_t>(H5Sget_simple_extent_npoints(shape), 0));
    if (count > 10'000) return;
    if (H5Tis_variable_str(kind) > 0) {
      std::vector<std::string> texts(count);
      std::vector<const char*> pointers;
      for (std::string& text : texts) {
        for (unsigned n = below(12); n > 0; --n) text += static_cast<char>(byte());
        pointers.push_back(n_th_null() ? nullptr : text.c_str());
      }
      pointers.push_back(nullptr);  // never an empty array
      return write(pointers.data());
    }
    std::vector<std::uint8_t> bytes(count * H5Tget_size(kind) + 1);
    const std::size_t given = std::min<std::size_t>(bytes.size(), static_cast<std::size_t>(end_ - next_));
    for (std::size_t i = 0; i < std::min<std::size_t>(given, 64); ++i) bytes[i] = static_cast<std::uint8_t>(byte());
    write(bytes.data());
  }
  bool n_th_null() { return byte() % 16 == 15; }

  const std::uint8_t* next_;
  const std::uint8_t* end_;
  hid_t file_ = -1;
  bool huge_ = false;
};

// A copy of one of the sound files (the first byte says which) in memory (/dev/shm), damaged as the other bytes say.
template <std::size_t n>
const std::filesystem::path& damaged(const std::array<const char*, n>& sound, const std::uint8_t* data,
                                     std::size_t size) {
  static const std::filesystem::path path = "/dev/shm/lockstep_fuzz_" + std::to_string(getpid()) + ".h5";
  static const int removed_at_exit = std::atexit([] { std::filesystem::remove(path); });
  (void)removed_at_exit;
  Hdf5Damage damage(data, size);
  std::filesystem::copy_file(std::string(LOCKSTEP_FUZZ_SOUND) + "/" + sound[damage.below(n)], path,
                             std::filesystem::copy_options::overwrite_existing);
  damage.apply(path);
  return path;
}

}  // namespace lockstep::fuzz
