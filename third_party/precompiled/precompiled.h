// Empty: found where no precompiled file fits (see BUILD).
