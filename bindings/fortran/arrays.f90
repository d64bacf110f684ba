function array_@name@(f, a) result(t)
  type(c_ptr), intent(in) :: f
  @kind@, intent(in), target :: a(@axes@)
  @kind@, allocatable, target :: copy(@axes@)
  type(c_ptr) :: t
  type(choir_shape) :: s
  s = reversed(shape(a))
  if (size(a) > 0 .and. is_contiguous(a)) then
    t = choir_borrow(f, @dtype@, s, c_loc(a))
  else
    allocate (copy, source=a)
    t = choir_constant(f, @dtype@, s, c_loc(copy))
  end if
end function

function to_@name@(t, a) result(status)
  type(c_ptr), intent(in) :: t
  @kind@, intent(inout) :: a(@axes@)
  @kind@, allocatable, target :: copy(@axes@)
  integer(c_int) :: status
  status = array_fits(t, @dtype@, shape(a))
  if (status /= CHOIR_OK .or. size(a) == 0) return
  allocate (copy, source=a)
  status = choir_tensor_to_host(t, c_loc(copy), size(a, kind=c_size_t) * storage_size(a) / 8)
  if (status == CHOIR_OK) a = copy
end function

function column_@name@(name, a) result(column)
  character(*), intent(in) :: name
  @kind@, intent(in), target :: a(@axes@)
  type(choir_array_column) :: column
  column%name = name
  column%dtype = @dtype@
  column%shape = reversed(shape(a))
  if (is_contiguous(a)) column%data = c_loc(a)
end function

