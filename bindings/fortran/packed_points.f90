! For fortran_test: a component whose neighbours are no whole number of elements apart, where the compiler packs derived
! types.
module packed_points
  use, intrinsic :: iso_fortran_env, only: int8, real32
  implicit none
  private
  public :: packed_temperature
  type :: packed_point
    real(real32) :: temperature = 0
    integer(int8) :: wet = 1
  end type
  type(packed_point), allocatable, target :: points(:, :)

contains
  function packed_temperature(n) result(temperature)  ! [3, n]
    integer, intent(in) :: n
    real(real32), pointer :: temperature(:, :)
    allocate (points(3, n))
    temperature => points%temperature
  end function
end module
