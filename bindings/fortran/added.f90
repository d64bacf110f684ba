
! The first axis of a Fortran array changes fastest: a(features, cells) is Choir's [cells, features].
! Arrays of other kinds than f32, f64, i32 and i64, and of more than 5 axes, do not compile.

! choir_array(f, a): a tensor of an array. The memory of a contiguous array with the attribute target is
! used as it is, and must live as long as the frame. Other arrays are copied.
interface choir_array
  module procedure @array@
end interface

! choir_tensor_to_array(t, a): copies a tensor to an array, and returns a status. CHOIR_INVALID: the
! array has another kind or other axes than the tensor.
interface choir_tensor_to_array
  module procedure @to@
end interface

! choir_array_column(name, a): a column of a dataset. The last axis of the array has its examples. The
! array is contiguous and has the attribute target.
interface choir_array_column
  module procedure @column@
end interface

! A column that choir_array_column makes.
type choir_array_column
  character(:), allocatable :: name
  integer(c_int) :: dtype = CHOIR_F32
  type(choir_shape) :: shape = choir_shape() ! of all examples
  type(c_ptr) :: data = c_null_ptr ! null: not contiguous
end type

type(choir_axes), parameter :: CHOIR_NO_AXIS = choir_axes(0)
type(choir_axes), parameter :: CHOIR_ALL_AXES = choir_axes(-1)

contains

! A shape of Choir: the slowest axis first.
pure function choir_shape_of(dims) result(shape)
  integer, intent(in) :: dims(:)
  type(choir_shape) :: shape
  shape%rank = size(dims)
  shape%dim(1:size(dims)) = int(dims, c_int64_t)
end function

! The set of one axis, counted from 0, or from the end by negative numbers: CHOIR_AXIS. Of several:
! choir_axes_of(2, [0, 2]).
pure function choir_axis(i) result(axes)
  integer, intent(in) :: i
  type(choir_axes) :: axes
  axes%bits = shiftl(1_c_int, iand(i, 31))
end function

! A text of Choir as a Fortran text; empty for NULL.
function choir_text(text) result(copy)
  type(c_ptr), intent(in) :: text
  character(:), allocatable :: copy
  character(kind=c_char), pointer :: letters(:)
  integer :: i
  copy = ""
  if (.not. c_associated(text)) return
  call c_f_pointer(text, letters, [huge(0)])
  i = 0
  do while (letters(i + 1) /= c_null_char)
    i = i + 1
  end do
  deallocate (copy)
  allocate (character(i) :: copy)
  copy = transfer(letters(1:i), copy)
end function

! Stops the program with Choir's text unless an action succeeded.
subroutine choir_must(status)
  integer(c_int), intent(in) :: status
  if (status == CHOIR_OK) return
  write (*, '(a)') choir_text(choir_error())
  error stop 1
end subroutine

! Stops the program with Choir's text unless an object was made.
subroutine choir_must_have(object)
  type(c_ptr), intent(in) :: object
  if (c_associated(object)) return
  write (*, '(a)') choir_text(choir_error())
  error stop 1
end subroutine

! A cluster of the processes of an MPI communicator, which is a number in Fortran (mpi_f08: MPI_VAL).
function choir_cluster_from_mpi_fortran(communicator, o) result(cluster)
  integer, intent(in), target :: communicator
  type(choir_cluster_options), intent(in), optional :: o
  type(c_ptr) :: cluster
  cluster = choir_cluster_from_mpi(c_loc(communicator), c_sizeof(communicator), o)
end function

! A dataset of arrays with equally many examples. Without copy, the arrays are used as they are, and must
! not change until the dataset is freed. NULL, with CHOIR_INVALID: columns that do not fit.
function choir_array_dataset_new(columns, copy) result(dataset)
  type(choir_array_column), intent(in) :: columns(:)
  logical, intent(in) :: copy
  type(c_ptr) :: dataset
  type(choir_column) :: c(size(columns))
  character(kind=c_char), target :: names(256, size(columns))
  character(200) :: text
  integer(c_int64_t) :: examples
  integer(c_int) :: status
  integer :: i, k
  dataset = c_null_ptr
  text = ""
  examples = 0
  if (size(columns) > 0) examples = columns(1)%shape%dim(1)
  do i = 1, size(columns)
    associate (own => columns(i))
      if (len(own%name) > 255) then
        text = "its name has more than 255 letters; a shorter one is needed"
      else if (.not. c_associated(own%data)) then
        text = "the array is not contiguous; a contiguous one is needed"
      else if (own%shape%dim(1) /= examples) then
        write (text, '(2(a, i0))') "the last axis of the array has ", own%shape%dim(1), &
          " examples; the first column has ", examples
      end if
      if (text /= "") then
        status = choir_fail_text(CHOIR_INVALID, 'dataset: column "' // own%name // '": ' // trim(text) // c_null_char)
        return
      end if
      names(:, i) = c_null_char
      do k = 1, len(own%name)
        names(k, i) = own%name(k:k)
      end do
      c(i)%name = c_loc(names(1, i))
      c(i)%dtype = own%dtype
      c(i)%shape%rank = own%shape%rank - 1
      c(i)%shape%dim(1:own%shape%rank - 1) = own%shape%dim(2:own%shape%rank)
      c(i)%data = own%data
    end associate
  end do
  dataset = choir_memory_dataset_new(examples, size(columns, kind=c_size_t), c, logical(copy, c_bool))
end function

pure function reversed(dims) result(s)
  integer, intent(in) :: dims(:)
  type(choir_shape) :: s
  s = choir_shape_of(dims(size(dims):1:-1))
end function

! "(3, 4)"
pure function axes_text(dims) result(text)
  integer, intent(in) :: dims(:)
  character(:), allocatable :: text
  character(20) :: one
  integer :: i
  text = "("
  do i = 1, size(dims)
    write (one, '(i0)') dims(i)
    text = text // trim(one) // merge(", ", ") ", i < size(dims))
  end do
  text = trim(text)
end function

! Whether a tensor fits into an array of this kind and these axes.
function array_fits(t, dtype, dims) result(status)
  type(c_ptr), intent(in) :: t
  integer(c_int), intent(in) :: dtype
  integer, intent(in) :: dims(:)
  integer(c_int) :: status
  type(choir_shape), pointer :: s
  integer, allocatable :: needed(:)
  status = choir_error_status()
  if (.not. c_associated(t) .and. status == CHOIR_OK) &
    status = choir_fail_text(CHOIR_INVALID, "array: the tensor is NULL" // c_null_char)
  if (.not. c_associated(t)) return
  call c_f_pointer(choir_tensor_shape(t), s)
  needed = int(s%dim(s%rank:1:-1))
  status = CHOIR_OK
  if (choir_tensor_dtype(t) == dtype .and. size(needed) == size(dims)) then
    if (all(needed == dims)) return
  end if
  status = choir_fail_text(CHOIR_INVALID, "array: it is " // choir_text(choir_dtype_name(dtype)) // " " // axes_text(dims) // &
    "; the tensor needs " // choir_text(choir_dtype_name(choir_tensor_dtype(t))) // " " // axes_text(needed) // c_null_char)
end function

@procedures@
end module
